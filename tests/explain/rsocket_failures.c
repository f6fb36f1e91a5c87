/* Calls of rsockets that are refused. As cm_failures.c: names to standard error, names and lines to standard output; with
 * "right" one connection is made and used as it should be, and nothing else; with "killed" one whose peer is killed. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEED(condition) \
  do { if (!(condition)) fprintf(stderr, "rsocket_failures.c:%d: %s: errno %d\n", __LINE__, #condition, errno), exit(2); } while (0)
#define REFUSED(name, call, error) \
  do { fprintf(stderr, "== %s\n", name); printf("%s %d\n", name, __LINE__); NEED((call) == -1 && errno == (error)); } while (0)

static struct sockaddr_in own;
static int listener;

static int new_socket(int type) {
  const int made = rsocket(AF_INET, type, 0);
  NEED(made >= 0);
  return made;
}
static void listen_somewhere(void) {
  socklen_t length = sizeof own;
  listener = new_socket(SOCK_STREAM);
  NEED(!rbind(listener, (struct sockaddr*)&own, sizeof own) && !rlisten(listener, 4));
  NEED(!rgetsockname(listener, (struct sockaddr*)&own, &length));
}
/* The child takes one connection, and is killed with it. It is made before there are rsockets here. */
static void lose_peer(void) {
  int ready[2];
  char letter;
  NEED(!pipe(ready));
  const pid_t child = fork();
  if (!child) {
    NEED(!prctl(PR_SET_PDEATHSIG, SIGKILL)); /* whatever becomes of us */
    listen_somewhere();
    NEED(write(ready[1], &own.sin_port, sizeof own.sin_port) == sizeof own.sin_port);
    NEED(raccept(listener, NULL, NULL) >= 0);
    for (;;) pause();
  }
  NEED(read(ready[0], &own.sin_port, sizeof own.sin_port) == sizeof own.sin_port);
  const int client = new_socket(SOCK_STREAM);
  NEED(!rconnect(client, (struct sockaddr*)&own, sizeof own));
  NEED(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
  REFUSED("killed-peer", rrecv(client, &letter, 1, 0), ECONNRESET);
  NEED(!rclose(client));
}
static void* serve(void* unused) {
  char letter;
  const int accepted = raccept(listener, NULL, NULL);
  NEED(accepted >= 0);
  while (rrecv(accepted, &letter, 1, 0) == 1) NEED(rsend(accepted, &letter, 1, 0) == 1);
  NEED(!rclose(accepted));
  return unused;
}

int main(int argc, char** argv) {
  const int is_right = argc > 1 && !strcmp(argv[1], "right");
  socklen_t length = sizeof own;
  char letter = 'x';
  pthread_t server;
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (argc > 1 && !strcmp(argv[1], "killed")) {
    lose_peer();
    return 0;
  }
  listen_somewhere();
  if (!is_right) {
    struct timeval odd = {0, 2000000};
    fd_set none;
    FD_ZERO(&none);
    REFUSED("no-such-family", rsocket(AF_UNIX, SOCK_STREAM, 0), EOPNOTSUPP);
    REFUSED("too-many", rselect(-1, &none, NULL, NULL, NULL), EINVAL);
    const int socket = new_socket(SOCK_STREAM), second = new_socket(SOCK_STREAM);
    struct sockaddr_in nobody = own;
    REFUSED("no-descriptor", rsend(900, &letter, 1, 0), EBADF);
    REFUSED("other-descriptor", rrecv(0, &letter, 1, 0), EBADF);
    NEED(!rclose(second));
    REFUSED("closed", rclose(second), EBADF);
    REFUSED("short-address", rbind(socket, (struct sockaddr*)&own, 4), EINVAL);
    REFUSED("odd-time", rsetsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &odd, sizeof odd), EDOM);
    REFUSED("not-connected", rwrite(socket, &letter, 1), ENOTCONN);
    nobody.sin_port = htons(1);
    REFUSED("nobody-listens", rconnect(socket, (struct sockaddr*)&nobody, sizeof nobody), ECONNREFUSED);
    NEED(!rclose(socket));
    const int third = new_socket(SOCK_STREAM);
    REFUSED("port-taken", rbind(third, (struct sockaddr*)&own, sizeof own) ? -1 : rlisten(third, 1), EADDRINUSE);
    NEED(!rclose(third));
  }
  NEED(!pthread_create(&server, NULL, serve, NULL));
  const int client = new_socket(SOCK_STREAM);
  NEED(!rconnect(client, (struct sockaddr*)&own, sizeof own));
  NEED(rsend(client, &letter, 1, 0) == 1 && rrecv(client, &letter, 1, 0) == 1);
  if (!is_right) {
    struct msghdr message = {.msg_control = &letter, .msg_controllen = 1};
    REFUSED("connected-twice", rconnect(client, (struct sockaddr*)&own, sizeof own), EISCONN);
    REFUSED("option", rsetsockopt(client, 99, 1, &length, sizeof length), ENOPROTOOPT);
    REFUSED("control-message", rsendmsg(client, &message, 0), EOPNOTSUPP);
    REFUSED("no-room-for-address", rgetpeername(client, NULL, NULL), EFAULT);
  }
  NEED(!rshutdown(client, SHUT_WR));
  if (!is_right) REFUSED("after-shutdown", rsend(client, &letter, 1, 0), EPIPE);
  NEED(!rclose(client) && !pthread_join(server, NULL) && !rclose(listener));
  if (!is_right) {
    static char much[1 << 16];
    const int datagrams = new_socket(SOCK_DGRAM);
    REFUSED("datagram-to-nobody", rsend(datagrams, &letter, 1, 0), EDESTADDRREQ);
    REFUSED("datagram-too-long", rsendto(datagrams, much, sizeof much, 0, (struct sockaddr*)&own, sizeof own), EMSGSIZE);
    struct sockaddr_in taken = own;
    const int first = new_socket(SOCK_DGRAM);
    taken.sin_port = 0;
    length = sizeof taken;
    NEED(!rbind(first, (struct sockaddr*)&taken, sizeof taken) && !rgetsockname(first, (struct sockaddr*)&taken, &length));
    REFUSED("datagram-port-taken", rbind(datagrams, (struct sockaddr*)&taken, sizeof taken), EADDRINUSE);
    taken.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, which no machine has (RFC 5737) */
    REFUSED("datagram-address", rbind(datagrams, (struct sockaddr*)&taken, sizeof taken), EADDRNOTAVAIL);
    NEED(!rclose(first) && !rclose(datagrams));
    fprintf(stderr, "== end\n");
  }
  return 0;
}
