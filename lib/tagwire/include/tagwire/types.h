/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects, addresses, flags and errors that the other headers use. */
#ifndef TAGWIRE_TYPES_H
#define TAGWIRE_TYPES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_worker tw_worker; /* one thread, one RX and one TX queue */
typedef struct tw_av tw_av;         /* address vector */
typedef struct tw_cq tw_cq;         /* completion queue */
typedef struct tw_cntr tw_cntr;     /* completion counter */
typedef struct tw_ep tw_ep;         /* endpoint */
typedef struct tw_mr tw_mr;         /* region of memory for peers */

/*
 * What an operation asks for, and what a completion says of it. Names and meaning are those of
 * fi_tagged(3), fi_msg(3) and fi_cq(3); the pages of doc/api say which call takes which.
 */
#define TW_SEND (1ull << 0)
#define TW_RECV (1ull << 1)
#define TW_TAGGED (1ull << 2)
#define TW_REMOTE_CQ_DATA (1ull << 3)
#define TW_MSG (1ull << 4)
#define TW_RMA (1ull << 5)
#define TW_ATOMIC (1ull << 6)
#define TW_READ (1ull << 7)
#define TW_WRITE (1ull << 8)
#define TW_REMOTE_READ (1ull << 9)
#define TW_REMOTE_WRITE (1ull << 10)
#define TW_COMPLETION (1ull << 16)
#define TW_SELECTIVE_COMPLETION (1ull << 17) /* tw_ep_bind_cq only */
#define TW_MORE (1ull << 18)
#define TW_INJECT (1ull << 19)
#define TW_INJECT_COMPLETE (1ull << 20)
#define TW_TRANSMIT_COMPLETE (1ull << 21)
#define TW_DELIVERY_COMPLETE (1ull << 22)
#define TW_MATCH_COMPLETE (1ull << 23)
#define TW_FENCE (1ull << 24)
#define TW_MULTI_RECV (1ull << 25)
#define TW_PEEK (1ull << 26)
#define TW_CLAIM (1ull << 27)
#define TW_DISCARD (1ull << 28)
#define TW_AUTH_KEY (1ull << 29)
#define TW_FLUSH (1ull << 30)        /* of a completion: tw_ep_flush */
#define TW_RMA_EVENT (1ull << 31)    /* tw_mr_open: accesses of peers are counted */
#define TW_FETCH_ATOMIC (1ull << 32) /* tw_atomic_valid only, as the next one */
#define TW_COMPARE_ATOMIC (1ull << 33)
#define TW_MR_REQUESTED_KEY (1ull << 34)
#define TW_MR_OFFSET (1ull << 35) /* remote addresses count from the start of the region */

/* The context of a peek that claims, and of the receive that takes the message: memory of the
 * caller until that receive was posted. Its content is the library's. */
struct tw_context {
    void* internal[4];
};

/* An endpoint's address as it is exchanged between peers (out of band, or typed by a person). */
struct tw_address {
    uint8_t family; /* 4 or 6 */
    uint8_t reserved;
    uint16_t udp_port; /* host order */
    uint16_t endpoint;
    uint8_t ip[16]; /* network order, IPv4 in the first four */
};
/* "192.0.2.1:18515", "192.0.2.1:18515/3", "[2001:db8::1]:18515" */
int tw_address_parse(const char* text, struct tw_address* address);
int tw_address_format(const struct tw_address* address, char* text, size_t size);

/* Index into an address vector. */
typedef uint64_t tw_addr;
#define TW_ADDR_UNSPEC ((tw_addr)-1)
#define TW_ADDR_NOTAVAIL TW_ADDR_UNSPEC

/* The protocol counts bytes of a message in 32 bits. */
#define TW_MAX_MESSAGE_SIZE (((size_t)1 << 32) - ((size_t)1 << 16))
#define TW_INJECT_SIZE 256 /* bytes of a message whose buffer is the caller's again at once */
#define TW_IOV_LIMIT 8
#define TW_AUTH_KEY_MAX 64

/* Errors beyond errno, numbered as in libfabric's fi_errno(3). */
#define TW_EOTHER 256
#define TW_EOPBADSTATE 258
#define TW_EAVAIL 259
#define TW_ENOEQ 261
#define TW_ENOCQ 263
#define TW_ETRUNC 265
#define TW_ENOAV 267

const char* tw_strerror(int error);
/* The text of the last failed call of this thread, with its remedy. */
const char* tw_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
