/* page: a document goes out as JSON, page or text, by the twin that is asked for. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "server/http/reply.h"

/* Answers 200 with the document (taken) in the form of q->twin; API routes always get JSON. Strong
 * ETag of the bytes. */
void page_reply(struct request *q, const char *name, cJSON *document, enum reply_caching caching,
                bool is_private);
