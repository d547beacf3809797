"""What is shown before a run starts or continues: the size of prompts, a changed manifest."""
