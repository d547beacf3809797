"""The border: file formats, their strict models and schemas, and the one parser of agents' answers."""
