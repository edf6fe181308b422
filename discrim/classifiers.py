"""Module path of versions before 0.2, which pickled models name. Importing it explains how to read such a pickle."""

raise ImportError(
    "This file was pickled by discrim 0.1, whose classes were stored under discrim.classifiers. Load it with the "
    "version that wrote it, write the model with discrim.save, and read that file with discrim.load."
)
