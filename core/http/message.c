/* Names of fields: which ones mean something to us, and which belong to one hop only. */
#include "core/http/message.h"

struct known_field {
	struct slice name;
	enum field_id id;
};

static const struct known_field known_fields[] = {
	{{"te", 2}, FIELD_TE},
	{{"host", 4}, FIELD_HOST},
	{{"expect", 6}, FIELD_EXPECT},
	{{"trailer", 7}, FIELD_TRAILER},
	{{"upgrade", 7}, FIELD_UPGRADE},
	{{"connection", 10}, FIELD_CONNECTION},
	{{"keep-alive", 10}, FIELD_KEEP_ALIVE},
	{{"authorization", 13}, FIELD_AUTHORIZATION},
	{{"content-length", 14}, FIELD_CONTENT_LENGTH},
	{{"proxy-connection", 16}, FIELD_PROXY_CONNECTION},
	{{"www-authenticate", 16}, FIELD_WWW_AUTHENTICATE},
	{{"transfer-encoding", 17}, FIELD_TRANSFER_ENCODING},
	{{"proxy-authenticate", 18}, FIELD_PROXY_AUTHENTICATE},
	{{"proxy-authorization", 19}, FIELD_PROXY_AUTHORIZATION},
};

#define N_KNOWN (sizeof(known_fields) / sizeof(known_fields[0]))

enum field_id field_identify(struct slice name)
{
	for (size_t i = 0; i < N_KNOWN; i++)
		if (known_fields[i].name.len == name.len && slice_ieq(known_fields[i].name, name))
			return known_fields[i].id;
	if (slice_ieq(slice_head(name, 6), SLICE("proxy-")))
		return FIELD_DROPPED;
	return FIELD_OTHER;
}

const struct field *message_field(const struct message *m, struct slice name)
{
	for (size_t i = 0; i < m->n_fields; i++)
		if (slice_ieq(m->fields[i].name, name))
			return &m->fields[i];
	return NULL;
}

uint64_t fields_wire_size(const struct field *fields, size_t n)
{
	enum { EXTRA = 4 }; /* colon, blank and line end */
	uint64_t bytes = 0;
	for (size_t i = 0; i < n; i++)
		bytes += fields[i].name.len + fields[i].value.len + EXTRA;
	return bytes;
}

bool field_is_hop_by_hop(enum field_id id)
{
	switch (id) {
	case FIELD_OTHER:
	case FIELD_CONTENT_LENGTH:
	case FIELD_EXPECT:
	case FIELD_HOST:
	case FIELD_TRAILER:
	case FIELD_AUTHORIZATION:
	case FIELD_WWW_AUTHENTICATE:
		return false;
	case FIELD_CONNECTION:
	case FIELD_KEEP_ALIVE:
	case FIELD_PROXY_AUTHENTICATE:
	case FIELD_PROXY_AUTHORIZATION:
	case FIELD_PROXY_CONNECTION:
	case FIELD_TE:
	case FIELD_TRANSFER_ENCODING:
	case FIELD_UPGRADE:
	case FIELD_DROPPED:
		return true;
	}
	return true;
}
