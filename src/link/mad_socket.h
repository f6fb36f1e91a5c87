#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "wire/flow.h"
#include "wire/mad.h"

/// Management datagrams between processes of one host: UNIX datagram sockets `<slots>/<slot>.mad`.
namespace ringbolt::link {

/// What is sent over the socket: see docs/formats/rendezvous.md, "management datagrams".
struct MadFrame {
  uint32_t sender_slot = 0;
  wire::Address source{};
  wire::Address destination{};
  uint32_t flow_label = 0;
  uint8_t traffic_class = 0;
  bool is_from_network = false;  ///< forwarded: the sender is no process of this host
  std::array<std::byte, wire::kMadBytes> bytes{};
};

inline constexpr size_t kMadFrameBytes = 56 + wire::kMadBytes;
void emit(const MadFrame& frame, std::array<std::byte, kMadFrameBytes>& out);
/// False for bytes that are no frame.
bool parse(const std::byte* bytes, size_t length, MadFrame& frame);

/// The socket of one process. Thread-safe: the kernel orders the calls.
/// Shared by those who send with it; the name goes with release(), or the last of them.
class MadSocket {
 public:
  /// `slot`: our own, whose lock we hold; what a crashed owner left there is removed. With `receives` false it can only
  /// send and has no name. Throws base::Error.
  static std::shared_ptr<MadSocket> open(const std::string& slots_directory, uint32_t slot, bool receives);
  ~MadSocket();
  MadSocket(const MadSocket&) = delete;
  MadSocket& operator=(const MadSocket&) = delete;

  int descriptor() const { return socket_.get(); }
  bool receives() const { return receives_; }
  /// 0; EAGAIN: its queue is full; another errno: nobody is there. Never blocks.
  int send(uint32_t slot, const MadFrame& frame) const;
  /// Whether a process receives at the slot.
  bool is_alive(uint32_t slot) const;
  /// False when nothing waits.
  bool receive(MadFrame& frame) const;
  /// The slots that have a socket, alive or not.
  std::vector<uint32_t> slots() const;
  /// Removes the name. Further datagrams are refused.
  void release();
  /// In a forked child: the name is the parent's.
  void abandon_after_fork();

 private:
  MadSocket(std::string directory, uint32_t slot, bool receives);
  void bind();

  const std::string directory_;
  const uint32_t slot_;
  const bool receives_;
  bool has_name_ = false;
  base::UniqueFd directory_fd_;
  base::UniqueFd socket_;
};

}  // namespace ringbolt::link
