"""A real robot on asphalt, gravel, ice and sand: see README.md beside this file."""
