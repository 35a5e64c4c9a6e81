"""The rules for a model folder, one function for each finding.

| module      | findings                                                                      |
| ----------- | ----------------------------------------------------------------------------- |
| `files`     | BAD_FILE, NO_TOKENIZER, FILES_DIFFER, TRANSFORMERS_DIFFERS,                   |
|             | TRANSFORMERS_FAILS, NOT_COMPARED                                              |
| `special`   | ADDED_TOKEN_ID, SPECIAL_TOKEN_UNKNOWN, ADDED_TOKEN_FLAGS, ADDED_TOKEN_MISSING, |
|             | SPECIAL_TOKENS_DISAGREE, MODEL_ID_DISAGREES                                   |
| `sizes`     | VOCAB_TOO_LARGE, ROWS_UNUSED                                                  |
| `template`  | TEMPLATE_BROKEN, TEMPLATE_TOKEN_UNKNOWN, DOUBLE_BOS, BOS_POLICY,              |
|             | TURN_END_NOT_STOP, TEMPLATES_DIFFER, HALF_A_TAG, TAGS_AS_TEXT,                |
|             | NO_GENERATION_TAG                                                             |

Findings are listed by severity, and then in the order in which the modules are imported here.
"""

from . import files, special, sizes, template  # isort: skip

__all__ = ["files", "sizes", "special", "template"]
