/* A library for LD_PRELOAD that writes down what a process and its children do to the files below POWERLOSS_ROOT.

   Each call that changes a file or a folder is one entry in the file POWERLOSS_LOG, appended in one write, so that all
   processes and the test itself share one order. A write into the page cache is entered after it, under a lock that
   all processes share; what waits for the disk (fsync, fdatasync, a write to a file that is opened with O_DSYNC) is
   entered before it begins and again when it has returned. A call that the recorder does not know how to replay is
   entered as unknown, and fails the test.

   The machine's boot id reads as the content of POWERLOSS_BOOT_ID: whoever starts on a replayed directory is to find
   that the machine has been restarted since.

   Entry: kind u8 | three numbers i64 | lengths of two byte strings u32 | the strings. `recording.py` reads it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_FD 65536
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static const char *root, *boot_id;
static size_t root_length;
static int log_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { ino_t ino; dev_t dev; char dsync; } known[MAX_FD];
static int64_t counter;

#define REAL(type, name, ...)                                        \
    static type (*real)(__VA_ARGS__);                                \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static void fatal(const char *what) {
    char text[256];
    int length = snprintf(text, sizeof text, "recorder: %s: %s\n", what, strerror(errno));
    ssize_t ignored = write(2, text, length);
    (void)ignored;
    _exit(97);
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("POWERLOSS_LOG");
    int fd;
    root = getenv("POWERLOSS_ROOT");
    boot_id = getenv("POWERLOSS_BOOT_ID");
    if (!root || !path) return;
    root_length = strlen(root);
    int (*real_open)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    fd = real_open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) fatal(path);
    log_fd = fcntl(fd, F_DUPFD_CLOEXEC, 700);
    if (log_fd < 0) fatal(path);
    close(fd);
}

static void hold(void) {
    pthread_mutex_lock(&lock);
    flock(log_fd, LOCK_EX);
}

static void release(void) {
    int saved = errno;
    flock(log_fd, LOCK_UN);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

static void enter(char kind, int64_t a, int64_t b, int64_t c, const void *one, size_t one_size,
                  const struct iovec *two, int pieces, size_t two_size) {
    static ssize_t (*real)(int, const struct iovec *, int);
    unsigned char head[33];
    struct iovec *vector = malloc((pieces + 2) * sizeof *vector);
    uint32_t sizes[2] = {(uint32_t)one_size, (uint32_t)two_size};
    int count = 2, saved = errno;
    size_t left = two_size;
    if (!vector) fatal("malloc");
    if (!real) real = (ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    head[0] = kind;
    memcpy(head + 1, &a, 8);
    memcpy(head + 9, &b, 8);
    memcpy(head + 17, &c, 8);
    memcpy(head + 25, sizes, 8);
    vector[0] = (struct iovec){head, sizeof head};
    vector[1] = (struct iovec){(void *)one, one_size};
    for (int i = 0; i < pieces && left; i++) {
        size_t part = two[i].iov_len < left ? two[i].iov_len : left;
        vector[count++] = (struct iovec){two[i].iov_base, part};
        left -= part;
    }
    if (count > IOV_MAX) {
        /* Too many pieces for one call: gathered. */
        unsigned char *all = malloc(two_size), *at = all;
        if (!all) fatal("malloc");
        for (int i = 2; i < count; i++) {
            memcpy(at, vector[i].iov_base, vector[i].iov_len);
            at += vector[i].iov_len;
        }
        vector[2] = (struct iovec){all, two_size};
        if (real(log_fd, vector, 3) != (ssize_t)(sizeof head + one_size + two_size)) fatal("the recording");
        free(all);
    } else if (real(log_fd, vector, count) != (ssize_t)(sizeof head + one_size + two_size)) {
        fatal("the recording");
    }
    free(vector);
    errno = saved;
}

static void enter_names(char kind, int64_t a, int64_t b, int64_t c, const char *one, const char *two) {
    struct iovec piece = {(void *)(two ? two : ""), two ? strlen(two) : 0};
    enter(kind, a, b, c, one, strlen(one), &piece, 1, piece.iov_len);
}

/* The path below the root, or NULL. */
static const char *below(int directory, const char *path, char *full) {
    char where[64];
    ssize_t length = 0;
    if (log_fd < 0 || !path) return NULL;
    if (path[0] != '/') {
        if (directory == AT_FDCWD) {
            if (!getcwd(full, PATH_MAX)) return NULL;
            length = strlen(full);
        } else {
            snprintf(where, sizeof where, "/proc/self/fd/%d", directory);
            length = readlink(where, full, PATH_MAX - 1);
            if (length < 0) return NULL;
        }
        full[length++] = '/';
    }
    if (length + strlen(path) >= PATH_MAX) return NULL;
    strcpy(full + length, path);
    if (strncmp(full, root, root_length) || (full[root_length] && full[root_length] != '/')) return NULL;
    return full + root_length;
}

/* The inode behind a descriptor that was opened below the root, or 0. */
static ino_t inode(int fd) {
    struct stat found;
    int saved = errno;
    if (log_fd < 0 || fd < 0 || fd >= MAX_FD || !known[fd].ino) return 0;
    if (fstat(fd, &found) || found.st_ino != known[fd].ino || found.st_dev != known[fd].dev) {
        known[fd].ino = 0;
        errno = saved;
        return 0;
    }
    errno = saved;
    return found.st_ino;
}

static void opened(int fd, const char *path, int flags) {
    struct stat found;
    if (fd >= MAX_FD) fatal("more descriptors than the recorder has room for");
    if (fstat(fd, &found)) fatal("fstat");
    known[fd].ino = found.st_ino;
    known[fd].dev = found.st_dev;
    known[fd].dsync = (flags & O_DSYNC) != 0;
    if ((flags & (O_CREAT | O_TRUNC)) != 0)
        enter_names('O', found.st_ino, flags & O_CREAT ? 1 : 0, flags & O_TRUNC ? 1 : 0, path, NULL);
}

static int open_as(int directory, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    const char *name;
    int fd;
    REAL(int, "openat", int, const char *, int, ...);
    if (boot_id && path && strcmp(path, BOOT_ID) == 0) path = boot_id;
    name = below(directory, path, full);
    if (!name) {
        fd = real(directory, path, flags, mode);
        if (fd >= 0 && fd < MAX_FD) known[fd].ino = 0;
        return fd;
    }
    hold();
    fd = real(directory, path, flags, mode);
    if (fd >= 0) opened(fd, name, flags);
    release();
    return fd;
}

#define MODE(flags)                                       \
    mode_t mode = 0;                                      \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                \
        va_list more;                                     \
        va_start(more, flags);                            \
        mode = va_arg(more, mode_t);                      \
        va_end(more);                                     \
    }
int open(const char *path, int flags, ...) { MODE(flags) return open_as(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return open_as(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags) return open_as(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags) return open_as(at, path, flags, mode); }
int __open_2(const char *path, int flags) { return open_as(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_as(AT_FDCWD, path, flags, 0); }
int __openat_2(int at, const char *path, int flags) { return open_as(at, path, flags, 0); }
int __openat64_2(int at, const char *path, int flags) { return open_as(at, path, flags, 0); }
int creat(const char *path, mode_t mode) { return open_as(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* Writes. `position` -1: where the descriptor stands. */

typedef ssize_t (*writer)(int, const struct iovec *, int, off64_t, int);

static ssize_t by_write(int fd, const struct iovec *pieces, int count, off64_t at, int flags) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    (void)at, (void)flags;
    return real(fd, pieces, count);
}

static ssize_t by_pwrite(int fd, const struct iovec *pieces, int count, off64_t at, int flags) {
    REAL(ssize_t, "pwritev2", int, const struct iovec *, int, off64_t, int);
    return real(fd, pieces, count, at, flags);
}

static ssize_t write_by(writer real, int fd, const struct iovec *pieces, int count, off64_t position, int flags) {
    ino_t ino = inode(fd);
    off64_t at = position;
    size_t size = 0;
    ssize_t written;
    if (!ino) return real(fd, pieces, count, position, flags);
    for (int i = 0; i < count; i++) size += pieces[i].iov_len;
    hold();
    if (at < 0) at = fcntl(fd, F_GETFL) & O_APPEND ? lseek64(fd, 0, SEEK_END) : lseek64(fd, 0, SEEK_CUR);
    if (known[fd].dsync || flags & (RWF_DSYNC | RWF_SYNC)) {
        int64_t number = ++counter << 24 | (getpid() & 0xffffff);
        enter('w', ino, at, number, "", 0, pieces, count, size);
        release();
        written = real(fd, pieces, count, position, flags);
        enter('e', ino, written, number, "", 0, NULL, 0, 0);
        return written;
    }
    written = real(fd, pieces, count, position, flags);
    if (written > 0) enter('W', ino, at, 0, "", 0, pieces, count, written);
    release();
    return written;
}

ssize_t write(int fd, const void *data, size_t size) {
    struct iovec piece = {(void *)data, size};
    return write_by(by_write, fd, &piece, 1, -1, 0);
}
ssize_t writev(int fd, const struct iovec *pieces, int count) {
    return write_by(by_write, fd, pieces, count, -1, 0);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    struct iovec piece = {(void *)data, size};
    return write_by(by_pwrite, fd, &piece, 1, at, 0);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return pwrite(fd, data, size, at); }
ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t at) {
    return write_by(by_pwrite, fd, pieces, count, at, 0);
}
ssize_t pwritev64(int fd, const struct iovec *pieces, int count, off64_t at) {
    return write_by(by_pwrite, fd, pieces, count, at, 0);
}
ssize_t pwritev2(int fd, const struct iovec *pieces, int count, off_t at, int flags) {
    return write_by(by_pwrite, fd, pieces, count, at, flags);
}
ssize_t pwritev64v2(int fd, const struct iovec *pieces, int count, off64_t at, int flags) {
    return write_by(by_pwrite, fd, pieces, count, at, flags);
}

ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t size, unsigned flags) {
    off64_t at;
    ssize_t copied;
    ino_t ino = inode(out);
    REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
    if (!ino) return real(in, in_at, out, out_at, size, flags);
    hold();
    at = out_at ? *out_at : lseek64(out, 0, SEEK_CUR);
    copied = real(in, in_at, out, out_at, size, flags);
    if (copied > 0) {
        struct iovec piece = {malloc(copied), copied};
        if (!piece.iov_base || pread(out, piece.iov_base, copied, at) != copied) fatal("copy_file_range");
        enter('W', ino, at, 0, "", 0, &piece, 1, copied);
        free(piece.iov_base);
    }
    release();
    return copied;
}

ssize_t sendfile(int out, int in, off_t *at, size_t size) {
    REAL(ssize_t, "sendfile", int, int, off_t *, size_t);
    if (inode(out)) enter_names('X', 0, 0, 0, "sendfile", NULL);
    return real(out, in, at, size);
}
ssize_t sendfile64(int out, int in, off64_t *at, size_t size) { return sendfile(out, in, at, size); }

/* Sizes. */

int ftruncate(int fd, off_t size) {
    ino_t ino = inode(fd);
    int result;
    REAL(int, "ftruncate", int, off_t);
    if (!ino) return real(fd, size);
    hold();
    result = real(fd, size);
    if (!result) enter('T', ino, size, 0, "", 0, NULL, 0, 0);
    release();
    return result;
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int truncate(const char *path, off_t size) {
    int fd = open_as(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0), result, saved;
    if (fd < 0) return -1;
    result = ftruncate(fd, size);
    saved = errno;
    close(fd);
    errno = saved;
    return result;
}
int truncate64(const char *path, off64_t size) { return truncate(path, size); }

static void allocated(ino_t ino, int mode, off64_t end) {
    if (mode & FALLOC_FL_KEEP_SIZE) return;
    if (mode) enter_names('X', 0, 0, 0, "fallocate", NULL);
    enter('A', ino, end, 0, "", 0, NULL, 0, 0);
}

int fallocate(int fd, int mode, off_t at, off_t size) {
    ino_t ino = inode(fd);
    int result;
    REAL(int, "fallocate", int, int, off_t, off_t);
    if (!ino) return real(fd, mode, at, size);
    hold();
    result = real(fd, mode, at, size);
    if (!result) allocated(ino, mode, at + size);
    release();
    return result;
}
int fallocate64(int fd, int mode, off64_t at, off64_t size) { return fallocate(fd, mode, at, size); }

int posix_fallocate(int fd, off_t at, off_t size) {
    ino_t ino = inode(fd);
    int result;
    REAL(int, "posix_fallocate", int, off_t, off_t);
    if (!ino) return real(fd, at, size);
    hold();
    result = real(fd, at, size);
    if (!result) allocated(ino, 0, at + size);
    release();
    return result;
}
int posix_fallocate64(int fd, off64_t at, off64_t size) { return posix_fallocate(fd, at, size); }

/* Names. */

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    char one[PATH_MAX], two[PATH_MAX];
    const char *old = below(from_at, from, one), *new = below(to_at, to, two);
    int result;
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    if (!old && !new) return real(from_at, from, to_at, to, flags);
    hold();
    result = real(from_at, from, to_at, to, flags);
    if (!result) enter_names(old && new && !(flags & ~RENAME_NOREPLACE) ? 'R' : 'X', 0, 0, 0, old ? old : from, new ? new : to);
    release();
    return result;
}
int renameat(int from_at, const char *from, int to_at, const char *to) {
    return renameat2(from_at, from, to_at, to, 0);
}
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int at, const char *path, int flags) {
    char full[PATH_MAX];
    const char *name = below(at, path, full);
    int result;
    REAL(int, "unlinkat", int, const char *, int);
    if (!name) return real(at, path, flags);
    hold();
    result = real(at, path, flags);
    if (!result) enter_names('U', 0, 0, 0, name, NULL);
    release();
    return result;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    struct stat found;
    if (lstat(path, &found)) return -1;
    return unlinkat(AT_FDCWD, path, S_ISDIR(found.st_mode) ? AT_REMOVEDIR : 0);
}

int mkdirat(int at, const char *path, mode_t mode) {
    char full[PATH_MAX];
    const char *name = below(at, path, full);
    struct stat found;
    int result;
    REAL(int, "mkdirat", int, const char *, mode_t);
    if (!name) return real(at, path, mode);
    hold();
    result = real(at, path, mode);
    if (!result) {
        if (fstatat(at, path, &found, 0)) fatal("fstatat");
        enter_names('M', found.st_ino, 0, 0, name, NULL);
    }
    release();
    return result;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    char full[PATH_MAX];
    REAL(int, "linkat", int, const char *, int, const char *, int);
    if (below(to_at, to, full)) enter_names('X', 0, 0, 0, "link", NULL);
    return real(from_at, from, to_at, to, flags);
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
int symlink(const char *to, const char *path) {
    char full[PATH_MAX];
    REAL(int, "symlink", const char *, const char *);
    if (below(AT_FDCWD, path, full)) enter_names('X', 0, 0, 0, "symlink", NULL);
    return real(to, path);
}

/* SQLite maps the index of its write-ahead log, which is made anew after the loss of power: `recording.py` says so. */
void *mmap(void *hint, size_t size, int protection, int flags, int fd, off_t at) {
    char where[64], path[PATH_MAX];
    ssize_t length;
    REAL(void *, "mmap", void *, size_t, int, int, int, off_t);
    if (fd >= 0 && flags & MAP_SHARED && protection & PROT_WRITE && inode(fd)) {
        snprintf(where, sizeof where, "/proc/self/fd/%d", fd);
        length = readlink(where, path, sizeof path - 1);
        if (length > 0) {
            path[length] = 0;
            enter_names('P', 0, 0, 0, path, NULL);
        }
    }
    return real(hint, size, protection, flags, fd, at);
}
void *mmap64(void *hint, size_t size, int protection, int flags, int fd, off64_t at) {
    return mmap(hint, size, protection, flags, fd, at);
}

/* Syncs. */

static int sync_by(int (*real)(int), int fd) {
    ino_t ino = inode(fd);
    int64_t number;
    int result;
    if (!ino) return real(fd);
    hold();
    number = ++counter << 24 | (getpid() & 0xffffff);
    enter('S', ino, 0, number, "", 0, NULL, 0, 0);
    release();
    result = real(fd);
    enter('s', ino, result, number, "", 0, NULL, 0, 0);
    return result;
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    return sync_by(real, fd);
}
int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    return sync_by(real, fd);
}
