// SPDX-License-Identifier: BSD-3-Clause
// In the place of libucm of UCX 1.4, for its tests (scripts/ucx-gtest.sh --blocking): without hooks of
// memory. Compiled against that release's own headers.
#include <sys/mman.h>
#include <ucm/api/ucm.h>
#include <ucm/util/log.h>
#include <ucm/util/sys.h>

ucm_global_config_t ucm_global_opts = {.alloc_alignment = 16};
const char* ucm_log_level_names[] = {"fatal", "error", "warn", "info", "debug", "trace", NULL};

void* ucm_orig_mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) {
    return mmap(address, length, protection, flags, fd, offset);
}

int ucm_orig_munmap(void* address, size_t length) {
    return munmap(address, length);
}

void ucm_parse_proc_self_maps(ucm_proc_maps_cb_t callback, void* argument) {
    (void)callback;
    (void)argument;
}

ucs_status_t ucm_set_event_handler(int events, int priority, ucm_event_callback_t callback,
                                   void* argument) {
    (void)events, (void)priority, (void)callback, (void)argument;
    return UCS_OK;
}

void ucm_unset_event_handler(int events, ucm_event_callback_t callback, void* argument) {
    (void)events, (void)callback, (void)argument;
}
