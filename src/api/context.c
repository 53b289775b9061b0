/* context.c: making and freeing a context, its callbacks, and the text of the last failure. */
#include "base/base.h"

#define VERSION_TEXT_(a, b, c) #a "." #b "." #c
#define VERSION_TEXT(a, b, c) VERSION_TEXT_(a, b, c)

const char *remat_version(void)
{
    return VERSION_TEXT(REMAT_VERSION_MAJOR, REMAT_VERSION_MINOR, REMAT_VERSION_PATCH);
}

remat_ctx *remat_ctx_new(const remat_alloc *hooks)
{
    const remat_alloc heap = hooks ? *hooks : rm_libc_heap;
    remat_ctx *ctx = rm_resize(&heap, NULL, 0, sizeof *ctx);
    if (!ctx) return NULL;
    *ctx = (remat_ctx){.heap = heap, .own_heap = heap};
    rm_options_reset(&ctx->options);
    atomic_init(&ctx->stop, false);
    return ctx;
}

void remat_ctx_free(remat_ctx *ctx)
{
    if (!ctx) return;
    const remat_alloc heap = ctx->heap;
    rm_arena_free(&heap, &ctx->scratch);
    rm_arena_free(&heap, &ctx->settings);
    rm_release(&heap, ctx, sizeof *ctx);
}

void remat_ctx_stop(remat_ctx *ctx)
{
    atomic_store_explicit(&ctx->stop, true, memory_order_relaxed);
}

void remat_ctx_resume(remat_ctx *ctx)
{
    atomic_store_explicit(&ctx->stop, false, memory_order_relaxed);
}

void remat_ctx_on_progress(remat_ctx *ctx, void (*fn)(void *user, const remat_progress *),
                           void *user)
{
    ctx->on_progress = fn;
    ctx->progress_user = user;
}

void remat_ctx_on_warning(remat_ctx *ctx, void (*fn)(void *user, const char *line), void *user)
{
    ctx->on_warning = fn;
    ctx->warning_user = user;
}

const char *remat_ctx_error(const remat_ctx *ctx) { return ctx->error.line; }
const char *remat_ctx_error_file(const remat_ctx *ctx) { return ctx->error.file; }
const char *remat_ctx_error_place(const remat_ctx *ctx) { return ctx->error.place; }
const char *remat_ctx_error_reason(const remat_ctx *ctx) { return ctx->error.reason; }
