/* Asks the C library for the addresses of a name, as every program does: usage: getaddrinfo NAME. Prints one address a line. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	char text[64];
	int error = argc == 2 ? getaddrinfo(argv[1], NULL, &hints, &list) : EAI_FAIL;
	if (error != 0) {
		printf("error: %s\n", gai_strerror(error));
		return 1;
	}
	for (struct addrinfo *a = list; a; a = a->ai_next)
		if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0)
			puts(text);
	freeaddrinfo(list);
	return 0;
}
