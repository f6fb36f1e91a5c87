#include "command.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "frame.h"

namespace ringbolt::guest {
namespace {

[[noreturn]] void become(const std::vector<std::string>& argv, const std::array<int, 3>& ends) {
  ::setsid();
  for (int stream = 0; stream < 3; ++stream) ::dup2(ends[static_cast<size_t>(stream)], stream);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
  ::execvp(words[0], words.data());
  std::fprintf(stderr, "%s: %s\n", words[0], std::strerror(errno));
  ::_exit(127);
}

}  // namespace

Command::Command(const std::vector<std::string>& argv) {
  std::array<int, 3> ends{-1, -1, -1};
  for (size_t stream = 0; stream < 3; ++stream) {
    int both[2] = {-1, -1};
    if (::pipe2(both, O_CLOEXEC) != 0) std::perror("agent: pipe2");
    const size_t ours = stream == 0 ? 1 : 0;
    pipes_[stream] = both[ours];
    ends[stream] = both[1 - ours];
    ::fcntl(pipes_[stream], F_SETFL, O_NONBLOCK);
  }
  pid_ = ::fork();
  if (pid_ == 0) become(argv, ends);
  for (const int end : ends) ::close(end);
}

Command::~Command() {
  for (int stream = 0; stream < 3; ++stream) shut(stream);
}

void Command::feed(std::string_view bytes) {
  pending_.append(bytes);
  ends_after_pending_ = ends_after_pending_ || bytes.empty();
  push();
}

void Command::signal(int number) const {
  if (pid_ > 0) ::kill(-pid_, number);
}

std::array<pollfd, 3> Command::interests() const {
  const bool has_input = !pending_.empty() || ends_after_pending_;
  return {pollfd{has_input ? pipes_[0] : -1, POLLOUT, 0}, pollfd{pipes_[1], POLLIN, 0}, pollfd{pipes_[2], POLLIN, 0}};
}

void Command::push() {
  while (!pending_.empty()) {
    const ssize_t written = ::write(pipes_[0], pending_.data(), pending_.size());
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0)
      pending_.clear();  // it reads no more
    else
      pending_.erase(0, static_cast<size_t>(written));
  }
  if (ends_after_pending_) shut(0);
}

std::string Command::pull(int stream) {
  std::string bytes(kMaxPayloadBytes, '\0');
  const ssize_t got = ::read(pipes_[static_cast<size_t>(stream)], bytes.data(), bytes.size());
  if (got == 0 || (got < 0 && errno != EAGAIN)) shut(stream);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

void Command::shut(int stream) {
  int& pipe = pipes_[static_cast<size_t>(stream)];
  if (pipe >= 0) ::close(pipe);
  pipe = -1;
  if (stream == 0) ends_after_pending_ = false;
}

}  // namespace ringbolt::guest
