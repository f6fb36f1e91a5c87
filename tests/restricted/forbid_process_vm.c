// Runs a command for which process_vm_readv and process_vm_writev fail with EPERM, as under the seccomp profiles of
// some containers: usage: forbid_process_vm COMMAND [ARGUMENTS]. Everything it starts inherits that.

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char** arguments) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  if (count < 2) {
    fprintf(stderr, "usage: forbid_process_vm COMMAND [ARGUMENTS]\n");
    return 2;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    fprintf(stderr, "forbid_process_vm: seccomp: %s\n", strerror(errno));
    return 2;
  }
  execvp(arguments[1], arguments + 1);
  fprintf(stderr, "forbid_process_vm: %s: %s\n", arguments[1], strerror(errno));
  return 127;
}
