#include "link/mad_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "link/socket.h"
#include "wire/bytes.h"

namespace ringbolt::link {
namespace {

constexpr uint32_t kMagic = 0x52424d44;  // "RBMD"
constexpr uint32_t kVersion = 1;
constexpr std::string_view kSuffix = ".mad";

std::string name_of(uint32_t slot) { return fmt::format("{}{}", slot, kSuffix); }

}  // namespace

void emit(const MadFrame& frame, std::array<std::byte, kMadFrameBytes>& out) {
  const std::span<std::byte> bytes(out);
  wire::put_be(bytes, 0, kMagic);
  wire::put_be(bytes, 4, kVersion);
  wire::put_be(bytes, 8, frame.sender_slot);
  wire::put_be(bytes, 12, frame.flow_label);
  wire::put_bytes(bytes, 16, frame.source);
  wire::put_bytes(bytes, 32, frame.destination);
  wire::put_be(bytes, 48, frame.traffic_class);
  wire::put_be(bytes, 49, static_cast<uint8_t>(frame.is_from_network ? 1 : 0));
  wire::put_be(bytes, 50, uint16_t{0});
  wire::put_be(bytes, 52, uint32_t{0});
  wire::put_bytes(bytes, 56, frame.bytes);
}

bool parse(const std::byte* data, size_t length, MadFrame& frame) {
  const std::span<const std::byte> bytes(data, length);
  if (length != kMadFrameBytes || wire::get_be<uint32_t>(bytes, 0) != kMagic ||
      wire::get_be<uint32_t>(bytes, 4) != kVersion) {
    return false;
  }
  frame.sender_slot = wire::get_be<uint32_t>(bytes, 8);
  frame.flow_label = wire::get_be<uint32_t>(bytes, 12);
  frame.source = wire::get_bytes<uint8_t, 16>(bytes, 16);
  frame.destination = wire::get_bytes<uint8_t, 16>(bytes, 32);
  frame.traffic_class = wire::get_be<uint8_t>(bytes, 48);
  frame.is_from_network = wire::get_be<uint8_t>(bytes, 49) == 1;
  frame.bytes = wire::get_bytes<std::byte, wire::kMadBytes>(bytes, 56);
  return true;
}

MadSocket::MadSocket(std::string directory, uint32_t slot, bool receives)
    : directory_(std::move(directory)),
      slot_(slot),
      receives_(receives),
      directory_fd_(::open(directory_.c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC)),
      socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (!directory_fd_.is_open() || !socket_.is_open()) {
    throw base::Error(errno, "open a management socket", directory_, "raise the limit of open files (ulimit -n)");
  }
}

std::shared_ptr<MadSocket> MadSocket::open(const std::string& slots_directory, uint32_t slot, bool receives) {
  std::shared_ptr<MadSocket> made(new MadSocket(slots_directory, slot, receives));
  if (receives) {
    made->bind();
  }
  return made;
}

void MadSocket::bind() {
  const std::string name = name_of(slot_);
  const auto address = socket_address(directory_, directory_fd_.get(), name);
  unlinkat(directory_fd_.get(), name.c_str(), 0);
  if (!address || ::bind(socket_.get(), address->get(), address->length) != 0) {
    throw base::Error(address ? errno : ENAMETOOLONG, "bind", directory_ + "/" + name,
                      "use a shorter RINGBOLT_RUNTIME_DIR, or free the file");
  }
  has_name_ = true;
  fchmodat(directory_fd_.get(), name.c_str(), 0600, 0);
}

MadSocket::~MadSocket() { release(); }

void MadSocket::release() {
  if (has_name_) {
    has_name_ = false;
    unlinkat(directory_fd_.get(), name_of(slot_).c_str(), 0);
  }
}

void MadSocket::abandon_after_fork() {
  has_name_ = false;
  socket_.reset();
  directory_fd_.reset();
}

int MadSocket::send(uint32_t slot, const MadFrame& frame) const {
  const auto address = socket_address(directory_, directory_fd_.get(), name_of(slot));
  if (!address) {
    return ENAMETOOLONG;
  }
  std::array<std::byte, kMadFrameBytes> bytes;
  emit(frame, bytes);
  const ssize_t sent =
      sendto(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT, address->get(), address->length);
  return sent >= 0 ? 0 : errno;
}

bool MadSocket::is_alive(uint32_t slot) const {
  const auto address = socket_address(directory_, directory_fd_.get(), name_of(slot));
  const base::UniqueFd probe(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return address && probe.is_open() && connect(probe.get(), address->get(), address->length) == 0;
}

bool MadSocket::receive(MadFrame& frame) const {
  std::array<std::byte, kMadFrameBytes + 1> bytes;
  for (;;) {
    const ssize_t length = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (length < 0) {
      return false;
    }
    if (parse(bytes.data(), static_cast<size_t>(length), frame)) {
      return true;
    }
  }
}

std::vector<uint32_t> MadSocket::slots() const {
  std::vector<uint32_t> found;
  DIR* folder = opendir(directory_.c_str());
  if (folder == nullptr) {
    return found;
  }
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name(entry->d_name);
    if (!name.ends_with(kSuffix)) {
      continue;
    }
    uint32_t slot = 0;
    const char* end = name.data() + (name.size() - kSuffix.size());
    const auto [stop, error] = std::from_chars(name.data(), end, slot);
    if (error == std::errc() && stop == end) {
      found.push_back(slot);
    }
  }
  closedir(folder);
  return found;
}

}  // namespace ringbolt::link
