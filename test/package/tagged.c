/* SPDX-License-Identifier: BSD-3-Clause */
/* Somebody else's program on libtagwire, as far as that goes without a port. */
#include <stdio.h>
#include <tagwire/tagwire.h>

int main(void) {
    struct tw_address address;
    char text[64];
    struct tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    if (attr.size != sizeof(attr) || tw_address_parse("192.0.2.1:4791/3", &address) != 0 ||
        tw_address_format(&address, text, sizeof(text)) < 0)
        return 1;
    puts(text);
    return 0;
}
