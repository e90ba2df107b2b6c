/* Lets User-Mode Linux run on processors with AMX. The kernel sets its processes' registers by ptrace, as far as it knew them
 * when it was built; a host refuses to set a part of them (EFAULT), although it gives one. Here the rest stays as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

typedef long (*call)(int, int, void *, void *);

/* The kernel has one thread that does this. Today's registers take 11,008 bytes. */
static char whole[1 << 16];

long ptrace(enum __ptrace_request request, ...) {
    static call system;
    if (!system) system = (call)dlsym(RTLD_NEXT, "ptrace");
    va_list list;
    va_start(list, request);
    int process = va_arg(list, int);
    void *address = va_arg(list, void *);
    void *data = va_arg(list, void *);
    va_end(list);

    long result = system(request, process, address, data);
    if (result == 0 || errno != EFAULT || request != PTRACE_SETREGSET || address != (void *)NT_X86_XSTATE) return result;
    struct iovec *given = data, all = {whole, sizeof whole};
    if (system(PTRACE_GETREGSET, process, address, &all) != 0 || given->iov_len > all.iov_len) return -1;
    memcpy(whole, given->iov_base, given->iov_len);
    return system(PTRACE_SETREGSET, process, address, &all);
}
