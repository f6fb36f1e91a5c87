// Process 1 of the referee's guest: sets it up, then runs the commands that the host sends. See tests/guest/README.md.

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "frame.h"
#include "setup.h"

namespace ringbolt::guest {
namespace {

/// Runs the host's commands, any number side by side. Not thread-safe.
class Agent {
 public:
  Agent(int port, int child_signals) : port_(port), child_signals_(child_signals) {}

  [[noreturn]] void serve() {
    send(0, Kind::hello, "up");
    for (;;) step();
  }

 private:
  void step() {
    std::vector<pollfd> polled{{port_, POLLIN, 0}, {child_signals_, POLLIN, 0}};
    std::vector<uint32_t> numbers;
    for (const auto& [number, command] : commands_) {
      for (const pollfd& interest : command->interests()) polled.push_back(interest);
      numbers.push_back(number);
    }
    if (::poll(polled.data(), polled.size(), -1) < 0) return;
    for (size_t index = 0; index < numbers.size(); ++index) {
      const auto found = commands_.find(numbers[index]);
      const pollfd* three = &polled[2 + 3 * index];
      if (three[0].revents != 0) found->second->push();
      if (three[1].revents != 0) pass_on(numbers[index], *found->second, 1);
      if (three[2].revents != 0) pass_on(numbers[index], *found->second, 2);
    }
    if (polled[1].revents != 0) reap();
    if ((polled[0].revents & POLLIN) != 0) receive();
  }

  void receive() {
    char bytes[4096];
    const ssize_t got = ::read(port_, bytes, sizeof bytes);
    if (got <= 0) return;
    reader_.append({bytes, static_cast<size_t>(got)});
    while (const auto frame = reader_.next()) obey(*frame);
  }

  void obey(const Frame& frame) {
    if (frame.kind == Kind::run) {
      std::vector<std::string> argv;
      for (size_t at = 0; at < frame.payload.size(); at += argv.back().size() + 1) {
        argv.emplace_back(frame.payload.c_str() + at);
      }
      commands_[frame.command] = std::make_unique<Command>(argv);
      return;
    }
    const auto found = commands_.find(frame.command);
    if (found == commands_.end()) return;  // it has just ended
    if (frame.kind == Kind::input) found->second->feed(frame.payload);
    if (frame.kind == Kind::signal && !frame.payload.empty()) found->second->signal(frame.payload[0]);
  }

  void reap() {
    signalfd_siginfo ignored;
    while (::read(child_signals_, &ignored, sizeof ignored) > 0) continue;
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) finish(pid, status);
  }

  void finish(pid_t pid, int status) {
    for (auto at = commands_.begin(); at != commands_.end(); ++at) {
      if (at->second->pid() != pid) continue;
      // What the program wrote is in the pipes; what a child of its may write later is not waited for.
      while (pass_on(at->first, *at->second, 1)) continue;
      while (pass_on(at->first, *at->second, 2)) continue;
      send(at->first, Kind::finished, {reinterpret_cast<const char*>(&status), sizeof status});
      commands_.erase(at);
      return;
    }
  }

  bool pass_on(uint32_t number, Command& command, int stream) {
    const std::string bytes = command.pull(stream);
    if (!bytes.empty()) send(number, stream == 1 ? Kind::out : Kind::error, bytes);
    return !bytes.empty();
  }

  void send(uint32_t number, Kind kind, std::string_view payload) {
    const std::string bytes = encode(number, kind, payload);
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t written = ::write(port_, bytes.data() + done, bytes.size() - done);
      if (written > 0) {
        done += static_cast<size_t>(written);
        continue;
      }
      pollfd room{port_, POLLOUT, 0};
      ::poll(&room, 1, 1000);
    }
  }

  int port_;
  int child_signals_;
  FrameReader reader_;
  std::map<uint32_t, std::unique_ptr<Command>> commands_;
};

}  // namespace
}  // namespace ringbolt::guest

int main() {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  const int port = ringbolt::guest::set_up();
  ringbolt::guest::Agent(port, ::signalfd(-1, &children, SFD_NONBLOCK | SFD_CLOEXEC)).serve();
}
