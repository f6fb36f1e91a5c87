// Runs a command without system calls that containers forbid; they fail with EPERM. Everything it starts inherits that.
//
//   forbid_process_vm [--container] COMMAND [ARGUMENTS]
//
// Without the option: process_vm_readv and process_vm_writev alone. With it also what a container without privileges
// has not: namespaces, mounts, tracing, and what else the usual profiles (Docker's, containerd's) leave out.

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FORBID(name)                                         \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),     \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

enum { kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP };

static struct sock_filter process_vm[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    FORBID(process_vm_readv),
    FORBID(process_vm_writev),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static struct sock_filter container[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    FORBID(process_vm_readv),
    FORBID(process_vm_writev),
    FORBID(unshare),
    FORBID(setns),
    FORBID(mount),
    FORBID(umount2),
    FORBID(pivot_root),
    FORBID(ptrace),
    FORBID(bpf),
    FORBID(perf_event_open),
    FORBID(userfaultfd),
    FORBID(io_uring_setup),
    FORBID(keyctl),
    FORBID(add_key),
    FORBID(kcmp),
    // The C library takes clone() where there is no clone3(), whose flags a filter can't see.
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNamespaces, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int main(int count, char** arguments) {
  const int is_container = count > 1 && strcmp(arguments[1], "--container") == 0;
  struct sock_fprog program = {sizeof process_vm / sizeof process_vm[0], process_vm};
  if (is_container) {
    program.len = sizeof container / sizeof container[0];
    program.filter = container;
  }
  char** command = arguments + 1 + is_container;
  if (count < 2 + is_container) {
    fprintf(stderr, "usage: forbid_process_vm [--container] COMMAND [ARGUMENTS]\n");
    return 2;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    fprintf(stderr, "forbid_process_vm: seccomp: %s\n", strerror(errno));
    return 2;
  }
  execvp(command[0], command);
  fprintf(stderr, "forbid_process_vm: %s: %s\n", command[0], strerror(errno));
  return 127;
}
