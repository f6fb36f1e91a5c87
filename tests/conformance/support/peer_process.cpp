#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <string>

#include "deadline.h"
#include "far.h"

extern char** environ;

namespace ringbolt::conformance {
namespace {

constexpr int kPeerSocket = 3;

/// Held here so that a test that killed its peer gets a new one.
std::unique_ptr<PeerProcess>& shared() {
  static std::unique_ptr<PeerProcess> process;
  return process;
}

}  // namespace

PeerProcess::PeerProcess() {
  int ends[2];
  must_succeed(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 ? 0 : errno,
               "socketpair");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // A duplicate is not close-on-exec; when the end already has the number, dup2 clears the flag.
  posix_spawn_file_actions_adddup2(&actions, ends[1], kPeerSocket);
  // A program of another machine runs by an emulator, and can't be started without it (scripts/arm64-run).
  const char* const emulator = std::getenv("RINGBOLT_TEST_EMULATOR");
  std::string program = emulator != nullptr ? emulator : "/proc/self/exe";
  std::string self(PATH_MAX, '\0');
  self.resize(static_cast<size_t>(std::max<ssize_t>(readlink("/proc/self/exe", self.data(), self.size()), 0)));
  char role[] = "--peer";
  char* direct[] = {program.data(), role, nullptr};
  char* emulated[] = {program.data(), self.data(), role, nullptr};
  const int error =
      posix_spawn(&pid_, program.c_str(), &actions, nullptr, emulator != nullptr ? emulated : direct, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  socket_ = ends[0];
  if (error != 0) {
    ::close(socket_);
    must_succeed(error, "posix_spawn");
  }
}

PeerProcess::~PeerProcess() { finish(); }

FarReply PeerProcess::call(const FarRequest& request) {
  if (send(socket_, &request, sizeof request, MSG_NOSIGNAL) != sizeof request) {
    throw SetUpError(std::string("peer process: ") + std::strerror(errno));
  }
  // Longer than the deadline of one wait there, so that the peer's own message arrives.
  const Deadline deadline(std::chrono::seconds(40));
  pollfd entry{socket_, POLLIN, 0};
  if (poll(&entry, 1, deadline.remaining_ms()) != 1) {
    throw SetUpError("the peer process does not answer");
  }
  FarReply reply;
  const ssize_t got = recv(socket_, &reply, sizeof reply, 0);
  if (got != sizeof reply) {
    throw SetUpError("the peer process has ended");
  }
  return reply;
}

void PeerProcess::signal(int number) { ::kill(pid_, number); }

void PeerProcess::finish() {
  if (socket_ >= 0) {
    ::close(socket_);
    socket_ = -1;
  }
  wait_for_exit();
}

void PeerProcess::kill() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
  }
  finish();
}

void PeerProcess::wait_for_exit() {
  if (pid_ <= 0) {
    return;
  }
  int status = 0;
  const bool has_exited =
      wait_until([&] { return waitpid(pid_, &status, WNOHANG) == pid_; });
  if (!has_exited) {
    ADD_FAILURE() << "the peer process " << pid_ << " did not exit";
    ::kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  } else if (!(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
    EXPECT_EQ(status, 0) << "the peer process ended with wait status " << status;
  }
  pid_ = -1;
}

int serve_as_peer(int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto side = std::make_unique<FarSide>();
  FarRequest request;
  while (recv(fd, &request, sizeof request, 0) == sizeof request) {
    const FarReply reply = side->handle(request);
    if (send(fd, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) {
      return 1;
    }
  }
  side.reset();
  // Expectations that failed in this process reach the parent as its exit code.
  return testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
}

PeerProcess& shared_peer() {
  if (shared() == nullptr || !shared()->is_running()) {
    shared() = std::make_unique<PeerProcess>();
  }
  return *shared();
}

void end_shared_peer() { shared().reset(); }

}  // namespace ringbolt::conformance
