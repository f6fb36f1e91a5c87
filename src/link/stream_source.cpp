#include "link/stream_source.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"
#include "link/stream_socket_source.h"

namespace ringbolt::link {
namespace {

/// Bytes as they are: no echo, no line discipline.
void make_raw(int descriptor) {
  termios settings{};
  if (tcgetattr(descriptor, &settings) == 0) {
    cfmakeraw(&settings);
    tcsetattr(descriptor, TCSANOW, &settings);
  }
}

bool never_block(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && ((flags & O_NONBLOCK) != 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0);
}

base::UniqueFd duplicate(int descriptor) { return base::UniqueFd(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)); }

/// Descriptors that the program was started with. They stay open besides, as whoever else has them sees it; so a peer
/// hears of our leaving by BYE, not by an end of file.
class InheritedStream final : public StreamSource {
 public:
  InheritedStream(int in, int out, bool is_reusable) : in_(in), out_(out), is_reusable_(is_reusable) {}

  base::Result<OpenStream> open() override {
    if (std::exchange(was_opened_, true) && !is_reusable_) {
      return base::fail(ENODEV);
    }
    base::UniqueFd in = duplicate(in_);
    base::UniqueFd out = out_ == in_ ? base::UniqueFd() : duplicate(out_);
    if (!in.is_open() || (out_ != in_ && !out.is_open())) {
      return base::fail(errno);
    }
    return adopt_stream(std::move(in), std::move(out));
  }
  bool can_reopen() const override { return is_reusable_; }

 private:
  int in_;
  int out_;
  bool is_reusable_;
  bool was_opened_ = false;
};

class DeviceStream final : public StreamSource {
 public:
  explicit DeviceStream(std::string path) : path_(std::move(path)) {}
  base::Result<OpenStream> open() override {
    // No peer: a Thunderbolt stream says ENXIO.
    base::UniqueFd device(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    return device.is_open() ? adopt_stream(std::move(device), {}) : base::fail(errno);
  }

 private:
  std::string path_;
};

std::optional<int> descriptor_of(std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? std::optional(value) : std::nullopt;
}

std::unique_ptr<StreamSource> inherited(const std::string& text, std::string_view numbers) {
  const size_t comma = numbers.find(',');
  const auto in = descriptor_of(numbers.substr(0, comma));
  const auto out = comma == std::string_view::npos ? in : descriptor_of(numbers.substr(comma + 1));
  struct stat status {};
  if (!in || !out || fstat(*in, &status) != 0 || fcntl(*out, F_GETFD) < 0) {
    throw base::Error(EBADF, "use an open descriptor", text, "start the program with it, as in 3<>/dev/tbstream0");
  }
  return std::make_unique<InheritedStream>(*in, *out, S_ISCHR(status.st_mode));
}

}  // namespace

base::Result<OpenStream> adopt_stream(base::UniqueFd in, base::UniqueFd out) {
  struct stat status {};
  OpenStream stream{std::move(in), std::move(out)};
  if (fstat(stream.write_descriptor(), &status) != 0) {
    return base::fail(errno);
  }
  stream.is_socket = S_ISSOCK(status.st_mode) && !stream.out.is_open();
  stream.is_pipe = S_ISFIFO(status.st_mode) || (S_ISSOCK(status.st_mode) && stream.out.is_open());
  const bool is_terminal = isatty(stream.in.get()) != 0;
  stream.is_in_packets = S_ISCHR(status.st_mode) && !is_terminal;
  if (is_terminal) {
    make_raw(stream.in.get());
  }
  // A socket is told with each call instead: its flags are shared with whoever else has it.
  if (!stream.is_socket && !(never_block(stream.in.get()) && never_block(stream.write_descriptor()))) {
    return base::fail(errno);
  }
  return stream;
}

std::unique_ptr<StreamSource> make_stream_source(const std::string& text) {
  const auto rest = [&](std::string_view prefix) { return text.substr(prefix.size()); };
  if (text.starts_with("fd:")) {
    return inherited(text, std::string_view(text).substr(3));
  }
  if (text.starts_with("unix:")) {
    return connect_to_unix(rest("unix:"));
  }
  if (text.starts_with("unix-listen:")) {
    return listen_on_unix(rest("unix-listen:"));
  }
  if (text.starts_with("tcp:")) {
    return connect_to_tcp(rest("tcp:"));
  }
  if (text.starts_with("tcp-listen:")) {
    return listen_on_tcp(rest("tcp-listen:"));
  }
  if (text.starts_with("/")) {
    return std::make_unique<DeviceStream>(text);
  }
  throw base::Error(EINVAL, "choose a stream", text,
                    "say fd:N, unix:PATH, unix-listen:PATH, tcp:HOST:PORT, tcp-listen:HOST:PORT or /dev/tbstreamN");
}

}  // namespace ringbolt::link
