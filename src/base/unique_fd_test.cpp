#include "base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <functional>

#include "base/error.h"

namespace ringbolt::base {
namespace {

/// Exit status of a child that runs `body` with descriptors 0 to 2 closed; `body` gives 0 if all is as it should be.
int status_without_standard_descriptors(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 0; fd < kFirstOwnFd; ++fd) {
      ::close(fd);
    }
    ::_exit(body());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int open_null(int flags) { return ::open("/dev/null", O_RDWR | flags); }

bool is_closed(int fd) { return ::fcntl(fd, F_GETFD) < 0 && errno == EBADF; }

TEST(UniqueFd, never_owns_a_standard_descriptor) {
  EXPECT_EQ(0, status_without_standard_descriptors([] {
              const UniqueFd built(open_null(O_CLOEXEC));
              UniqueFd given;
              given.reset(open_null(O_CLOEXEC));
              const bool are_above = built.get() >= kFirstOwnFd && given.get() >= kFirstOwnFd;
              return are_above && is_closed(0) && is_closed(1) && is_closed(2) ? 0 : 1;
            }));
}

TEST(UniqueFd, keeps_whether_a_descriptor_is_inherited) {
  EXPECT_EQ(0, status_without_standard_descriptors([] {
              const UniqueFd own(open_null(O_CLOEXEC));
              const UniqueFd inherited(open_null(0));
              return ::fcntl(own.get(), F_GETFD) == FD_CLOEXEC && ::fcntl(inherited.get(), F_GETFD) == 0 ? 0 : 1;
            }));
}

TEST(UniqueFd, owns_nothing_when_no_other_number_is_left) {
  EXPECT_EQ(0, status_without_standard_descriptors([] {
              const rlimit limit{kFirstOwnFd, kFirstOwnFd};
              if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
                return 2;
              }
              const UniqueFd fd(open_null(O_CLOEXEC));
              return !fd.is_open() && errno == EMFILE && is_closed(0) ? 0 : 1;
            }));
}

TEST(Error, names_the_limit_of_descriptors) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::string number = std::to_string(limit.rlim_cur);
  EXPECT_EQ(reason_of(EMFILE), "Too many open files (this process may have " + number + ": raise `ulimit -n`)");
  EXPECT_NE(std::string(Error(EMFILE, "socket", "a queue pair").what()).find("ulimit -n"), std::string::npos);
  EXPECT_EQ(reason_of(ENOENT), "No such file or directory");
}

}  // namespace
}  // namespace ringbolt::base
