/* Shows every call that changes files below a folder to two functions, which may let it fail. For LD_PRELOAD.
 *
 * `before` is called with the name of the call, its paths and its size. It returns 0 to go on, an errno to fail with,
 * or -1 to write only a part. `after` is called with what a successful call has done. Calls that touch no file below
 * the folder, and those of a function itself, go through unseen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

typedef long (*before_t)(const char *call, const char *path, const char *other, long size);
typedef void (*after_t)(const char *call, const char *path, const char *other, long offset, const void *data, long size);

static before_t before_call;
static after_t after_call;
static char root[PATH_MAX];
static size_t root_length;
static __thread int is_inside;

void shim_watch(const char *folder, before_t before, after_t after) {
    root_length = strlen(folder);
    memcpy(root, folder, root_length + 1);
    after_call = after;
    before_call = before;
}

void shim_ignore(void) { before_call = NULL; }

#define REAL(result, name, ...)                                                  \
    static result (*real)(__VA_ARGS__);                                          \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int is_watched(const char *path) {
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static int path_of_handle(int handle, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return length > 0;
}

static int path_at(int folder, const char *name, char *path) {
    if (!name) return 0;
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return 1;
    }
    char base[PATH_MAX];
    if (folder == AT_FDCWD ? !getcwd(base, sizeof base) : !path_of_handle(folder, base)) return 0;
    return snprintf(path, PATH_MAX, "%s/%s", base, name) < PATH_MAX;
}

static int is_seen(void) { return before_call && !is_inside; }

static long ask(const char *call, const char *path, const char *other, long size) {
    is_inside = 1;
    long answer = before_call(call, path, other, size);
    is_inside = 0;
    return answer;
}

static void tell(const char *call, const char *path, const char *other, long offset, const void *data, long size) {
    int code = errno;
    is_inside = 1;
    if (after_call) after_call(call, path, other, offset, data, size);
    is_inside = 0;
    errno = code;
}

/* Runs `expression` for the watched path, or fails as told. `kind` is what the call does, the same for its variants. */
#define GUARD(kind, path, other, size, expression, data, length)                 \
    do {                                                                         \
        long answer = ask(kind, path, other, size);                              \
        if (answer > 0) { errno = (int)answer; return -1; }                      \
        long done = (long)(expression);                                          \
        if (done >= 0) tell(kind, path, other, 0, data, length);                 \
        return done;                                                             \
    } while (0)

static int do_open(int (*real)(int, const char *, int, ...), int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || !is_seen() || !path_at(folder, name, path) || !is_watched(path))
        return real(folder, name, flags, mode);
    GUARD(flags & O_TRUNC ? "create" : "open", path, "", 0, real(folder, name, flags, mode), NULL, 0);
}

#define MODE(flags)                                                              \
    mode_t mode = 0;                                                             \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                       \
        va_list rest;                                                            \
        va_start(rest, flags);                                                   \
        mode = va_arg(rest, mode_t);                                             \
        va_end(rest);                                                            \
    }

#define OPEN(function)                                                           \
    int function(const char *name, int flags, ...) {                             \
        MODE(flags)                                                              \
        REAL(int, "openat64", int, const char *, int, ...);                      \
        return do_open(real, AT_FDCWD, name, flags, mode);                       \
    }
#define OPENAT(function)                                                         \
    int function(int folder, const char *name, int flags, ...) {                 \
        MODE(flags)                                                              \
        REAL(int, "openat64", int, const char *, int, ...);                      \
        return do_open(real, folder, name, flags, mode);                         \
    }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

static long place_of(int handle, long done) {
    int flags = fcntl(handle, F_GETFL);
    struct stat state;
    if (flags >= 0 && flags & O_APPEND && !fstat(handle, &state)) return state.st_size - done;
    return lseek(handle, 0, SEEK_CUR) - done;
}

ssize_t write(int handle, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    char path[PATH_MAX];
    if (!is_seen() || !size || !path_of_handle(handle, path) || !is_watched(path)) return real(handle, data, size);
    long answer = ask("write", path, "", (long)size);
    if (answer > 0) { errno = (int)answer; return -1; }
    if (answer < 0 && size > 1) size /= 2;
    ssize_t done = real(handle, data, size);
    if (done > 0) tell("write", path, "", place_of(handle, done), data, done);
    return done;
}

ssize_t writev(int handle, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    char path[PATH_MAX];
    if (!is_seen() || !path_of_handle(handle, path) || !is_watched(path)) return real(handle, parts, count);
    for (int part = 0; part < count; part++)
        if (parts[part].iov_len) return write(handle, parts[part].iov_base, parts[part].iov_len);
    return 0;
}

#define PWRITE(function, offset_t)                                               \
    ssize_t function(int handle, const void *data, size_t size, offset_t offset) { \
        REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);           \
        char path[PATH_MAX];                                                     \
        if (!is_seen() || !size || !path_of_handle(handle, path) || !is_watched(path)) \
            return real(handle, data, size, offset);                             \
        long answer = ask("write", path, "", (long)size);                        \
        if (answer > 0) { errno = (int)answer; return -1; }                      \
        if (answer < 0 && size > 1) size /= 2;                                   \
        ssize_t done = real(handle, data, size, offset);                         \
        if (done > 0) tell("write", path, "", (long)offset, data, done);         \
        return done;                                                             \
    }
PWRITE(pwrite, off_t) PWRITE(pwrite64, off64_t)

#define SYNC(function)                                                           \
    int function(int handle) {                                                   \
        REAL(int, #function, int);                                               \
        char path[PATH_MAX];                                                     \
        if (!is_seen() || !path_of_handle(handle, path) || !is_watched(path)) return real(handle); \
        GUARD("sync", path, "", 0, real(handle), NULL, 0);                       \
    }
SYNC(fsync) SYNC(fdatasync)

#define FTRUNCATE(function, offset_t)                                            \
    int function(int handle, offset_t size) {                                    \
        REAL(int, "ftruncate64", int, off64_t);                                  \
        char path[PATH_MAX];                                                     \
        if (!is_seen() || !path_of_handle(handle, path) || !is_watched(path)) return real(handle, size); \
        GUARD("truncate", path, "", (long)size, real(handle, size), NULL, (long)size); \
    }
FTRUNCATE(ftruncate, off_t) FTRUNCATE(ftruncate64, off64_t)

int fchmod(int handle, mode_t mode) {
    REAL(int, "fchmod", int, mode_t);
    char path[PATH_MAX];
    if (!is_seen() || !path_of_handle(handle, path) || !is_watched(path)) return real(handle, mode);
    GUARD("chmod", path, "", 0, real(handle, mode), NULL, 0);
}

#define ONE_PATH(function, kind, folder, declared, passed, types)                \
    int function declared {                                                      \
        REAL(int, #function, types);                                             \
        char path[PATH_MAX];                                                     \
        if (!is_seen() || !path_at(folder, name, path) || !is_watched(path)) return real passed; \
        GUARD(kind, path, "", 0, real passed, NULL, 0);                          \
    }
#define TYPES(...) __VA_ARGS__
ONE_PATH(unlink, "unlink", AT_FDCWD, (const char *name), (name), TYPES(const char *))
ONE_PATH(rmdir, "unlink", AT_FDCWD, (const char *name), (name), TYPES(const char *))
ONE_PATH(unlinkat, "unlink", folder, (int folder, const char *name, int flags), (folder, name, flags), TYPES(int, const char *, int))
ONE_PATH(mkdir, "mkdir", AT_FDCWD, (const char *name, mode_t mode), (name, mode), TYPES(const char *, mode_t))
ONE_PATH(mkdirat, "mkdir", folder, (int folder, const char *name, mode_t mode), (folder, name, mode), TYPES(int, const char *, mode_t))
ONE_PATH(chmod, "chmod", AT_FDCWD, (const char *name, mode_t mode), (name, mode), TYPES(const char *, mode_t))
ONE_PATH(fchmodat, "chmod", folder, (int folder, const char *name, mode_t mode, int flags), (folder, name, mode, flags), TYPES(int, const char *, mode_t, int))

#define TWO_PATHS(function, kind, from_folder, to_folder, declared, passed, types) \
    int function declared {                                                      \
        REAL(int, #function, types);                                             \
        char path[PATH_MAX], other[PATH_MAX];                                    \
        if (!is_seen() || !path_at(from_folder, from, path) || !path_at(to_folder, to, other)) return real passed; \
        if (!is_watched(path) && !is_watched(other)) return real passed;         \
        GUARD(kind, path, other, 0, real passed, NULL, 0);                       \
    }
TWO_PATHS(rename, "rename", AT_FDCWD, AT_FDCWD, (const char *from, const char *to), (from, to), TYPES(const char *, const char *))
TWO_PATHS(renameat, "rename", one, two, (int one, const char *from, int two, const char *to), (one, from, two, to), TYPES(int, const char *, int, const char *))
TWO_PATHS(renameat2, flags & 2 ? "exchange" : "rename", one, two, (int one, const char *from, int two, const char *to, unsigned flags), (one, from, two, to, flags), TYPES(int, const char *, int, const char *, unsigned))
TWO_PATHS(link, "link", AT_FDCWD, AT_FDCWD, (const char *from, const char *to), (from, to), TYPES(const char *, const char *))
TWO_PATHS(linkat, "link", one, two, (int one, const char *from, int two, const char *to, int flags), (one, from, two, to, flags), TYPES(int, const char *, int, const char *, int))
