// SPDX-License-Identifier: BSD-3-Clause
// The ioctls behind ibv_import_device, ibv_import_pd and ibv_import_mr: a second user of an
// open file (through a duplicate of its descriptor) asks for what the first one was told.
#pragma once

#include "drivers/softcx/uverbs/attributes.h"

namespace softcx {

int query_context(Context& context, const Attributes& attributes);
int query_pd(Context& context, const Attributes& attributes);
int query_mr(Context& context, const Attributes& attributes);
int alloc_async_events(Context& context, const Attributes& attributes);

}  // namespace softcx
