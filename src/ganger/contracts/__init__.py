"""The file formats, their strict models and schemas, and the only parser of agents' answers."""
