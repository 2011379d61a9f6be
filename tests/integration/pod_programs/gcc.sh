cat > a.c <<'END'
#include <pthread.h>
#include <stdio.h>

static void *give(void *p)
{
	return p;
}

int main(void)
{
	pthread_t t;
	if (pthread_create(&t, NULL, give, NULL) != 0 || pthread_join(t, NULL) != 0)
		return 1;
	puts("hello");
	return 0;
}
END
printf 'a: a.o\n\tgcc -flto=2 -O2 -pthread -o a a.o\na.o: a.c\n\tgcc -O2 -g -flto -c a.c\n' > Makefile
make -j2
./a
