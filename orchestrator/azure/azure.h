/* What is said of Azure: where it is, whose it is, and who we are there. All of it is the command line's or the environment's. */
#ifndef CAGE_AZURE_AZURE_H
#define CAGE_AZURE_AZURE_H

#include <stdbool.h>
#include <stddef.h>

#define AZURE_ENDPOINT "https://management.azure.com"
#define AZURE_AUTHORITY "https://login.microsoftonline.com"
#define AZURE_IDENTITY "http://169.254.169.254"

/* How a token is come by. */
enum azure_credentials {
	CREDENTIALS_AUTO, /* the first of the following of which the environment speaks; else the identity of this machine */
	CREDENTIALS_SECRET,   /* AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET */
	CREDENTIALS_WORKLOAD, /* AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_FEDERATED_TOKEN_FILE */
	CREDENTIALS_IDENTITY, /* a managed identity, asked for at the machine's own link; AZURE_CLIENT_ID says which one */
	CREDENTIALS_AZ        /* az account get-access-token */
};

struct azure_options {
	const char *endpoint;     /* of the API, without a slash at its end */
	const char *resource;     /* that tokens are for; NULL: the endpoint itself, which the management API is */
	const char *subscription; /* its id */
	const char *group;        /* resource group */
	const char *ca_file;      /* NULL: those of the system */
	enum azure_credentials credentials;
};

/* "auto", "secret", "workload", "identity" or "az". False: none of them. */
bool azure_credentials_read(const char *text, enum azure_credentials *out);

/* The same as an option of a program (core/base/option_table.h). */
static inline const char *azure_take_credentials(void *place, const char *value)
{
	return azure_credentials_read(value, place) ? NULL : "expected auto, secret, workload, identity or az";
}

/* Can it be a part of an address as it is: the name of a subscription, a resource group, a region? NULL: no. */
bool azure_name_is_plain(const char *text);

/* May something be asked for there, with a token? Only by https, but on this machine and at the identity service of its link. */
bool web_url_is_safe(const char *url);

#endif
