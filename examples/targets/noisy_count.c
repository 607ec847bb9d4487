/* A count with noise that is exact, in C, without libraries.
 *
 *     cc -O2 -o noisy_count examples/targets/noisy_count.c
 *     dpaudit attack 'exec:./noisy_count' --claim "epsilon=1" --relation replace-one --domain 0,1 --rows 3
 *
 * Counts the positive numbers; one row changes that by at most 1. The noise k has probability proportional to e^-|k|,
 * and is made of integers alone (Canonne, Kamath and Steinke 2020, algorithms 1 and 2). An argument, an integer, is the
 * epsilon that the noise is made for; 2 is half the noise, which an audit of epsilon = 1 finds.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Reading JSON, as much as a request needs: the end of the value that begins at p, and the members of an object. */
static const char *space(const char *p) { return p + strspn(p, " \t\r\n"); }

static const char *past(const char *p) {
    int depth = 0, quoted = 0;
    for (p = space(p); *p; p++) {
        if (quoted) {
            if (*p == '\\' && p[1]) p++;
            else if (*p == '"') quoted = 0;
        } else if (*p == '"') quoted = 1;
        else if (*p == '[' || *p == '{') depth++;
        else if (*p == ']' || *p == '}') { if (depth == 0) return p; depth--; }
        else if (depth == 0 && strchr(", \t\r\n", *p)) return p;
        if (depth == 0 && !quoted && strchr("\"]}", *p)) return p + 1;
    }
    return p;
}

static const char *member(const char *object, const char *name) {
    const char *p = space(object);
    if (*p != '{') return NULL;
    for (p = space(p + 1); *p == '"';) {
        const char *end = past(p), *value = space(end);
        if (*value != ':') return NULL;
        value = space(value + 1);
        if (strlen(name) == (size_t)(end - p - 2) && !strncmp(p + 1, name, end - p - 2)) return value;
        p = space(past(value));
        if (*p == ',') p = space(p + 1);
    }
    return NULL;
}

/* Random words: splitmix64 from a seed, or the system's. */
static uint64_t state;
static int seeded;

static uint64_t word(void) {
    uint64_t z;
    if (!seeded) {
        if (getrandom(&z, sizeof z, 0) != sizeof z) exit(1);
        return z;
    }
    z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* An integer below k, each as likely: words that would make the first ones likelier are not used. */
static uint64_t below(uint64_t k) {
    uint64_t few = -k % k, w; /* 2^64 modulo k */
    do w = word(); while (w < few);
    return w % k;
}

/* 1 with probability 1/e = 1 - 1 + 1/2 - 1/6 + ... */
static int one_in_e(void) {
    uint64_t k = 1;
    while (below(k) == 0) k++;
    return k % 2 == 1;
}

static long geometric(long epsilon) {
    long k = 0;
    while (one_in_e()) k++;
    return k / epsilon;
}

int main(int argc, char **argv) {
    long epsilon = argc > 1 ? atol(argv[1]) : 1;
    char *line = NULL;
    size_t size = 0;
    if (epsilon < 1) return fputs("epsilon must be an integer of at least 1\n", stderr), 2;
    printf("{\"hello\": {\"protocol\": 1, \"seeded\": true, \"states\": {\"noise\": {\"distribution\": "
           "\"two-sided geometric\", \"scale\": %.17g, \"sensitivity\": 1}}}}\n", 1.0 / epsilon);
    fflush(stdout);
    while (getline(&line, &size, stdin) > 0) {
        const char *id = member(line, "id"), *data = member(line, "data"), *n = member(line, "n");
        const char *seed = member(line, "seed"), *p;
        long count = 0;
        if (!id || !data || !n || *data != '[') return fprintf(stderr, "not a request: %s", line), 1;
        for (p = space(data + 1); *p && *p != ']'; p = *p == ',' ? space(p + 1) : p) {
            count += strtod(p, NULL) > 0;
            p = space(past(p));
        }
        seeded = seed && *seed != 'n';
        state = seeded ? strtoull(seed, NULL, 10) : 0;
        printf("{\"id\": %.*s, \"outputs\": [", (int)(past(id) - id), id);
        for (long left = strtol(n, NULL, 10); left > 0; left--) {
            long up = geometric(epsilon), down = geometric(epsilon);
            printf(left > 1 ? "%ld, " : "%ld", count + up - down);
        }
        puts("]}");
        fflush(stdout);
    }
    free(line);
    return 0;
}
