/* empty: the one source of a library whose folder has none yet. */

typedef int empty_translation_unit;
