// The far side of a connection, in this process or in another one, behind one interface.
#pragma once

#include <sys/types.h>

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "far_protocol.h"

namespace ringbolt::conformance {

/// Where the far side lives.
enum class Placement { same_process, other_process };

const char* placement_name(Placement placement);

void PrintTo(Placement placement, std::ostream* out);

/// Both placements as parameters of a test suite, and their names.
inline constexpr Placement kPlacements[] = {Placement::same_process, Placement::other_process};
std::string parameter_name(const testing::TestParamInfo<Placement>& parameter);

/// A process of this very program in the role of a peer: it serves FarRequests until its socket
/// closes. Ends it on destruction.
class PeerProcess {
 public:
  PeerProcess();
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Throws SetUpError when the peer does not answer in time.
  FarReply call(const FarRequest& request);

  pid_t pid() const { return pid_; }
  /// Sends a signal to the process.
  void signal(int number);
  /// Closes the socket, so that the process closes its objects and exits; waits for that.
  void finish();
  /// Kills the process and waits until it is gone.
  void kill();
  bool is_running() const { return pid_ > 0; }

 private:
  void wait_for_exit();

  pid_t pid_ = -1;
  int socket_ = -1;
};

/// The peer role of main(): serves requests on the socket `fd`. Returns the exit code.
int serve_as_peer(int fd);

/// The far side. Every call throws SetUpError when the far side could not do it.
class Far {
 public:
  explicit Far(Placement placement);
  /// In a process that the caller owns; it must outlive this.
  explicit Far(PeerProcess& process);
  ~Far();
  Far(const Far&) = delete;
  Far& operator=(const Far&) = delete;

  void open(const QpOptions& qp, uint64_t region_bytes, unsigned region_access = kAllAccess);
  void connect(const QpAddress& peer);
  int post_recv(uint64_t wr_id, const std::vector<Piece>& pieces);
  int post_send(uint64_t wr_id, ibv_wr_opcode opcode, const std::vector<Piece>& pieces,
                unsigned flags = IBV_SEND_SIGNALED, uint64_t remote_address = 0, uint32_t rkey = 0,
                uint32_t immediate = 0);
  ibv_wc wait_recv();
  ibv_wc wait_send();
  void fill(const std::vector<Piece>& pieces, uint64_t seed);
  std::string check(const std::vector<Piece>& pieces, uint64_t length, uint64_t seed);
  /// Asks until it is right: a UC write is complete when it has left, and may be on its way still.
  std::string check_soon(const std::vector<Piece>& pieces, uint64_t length, uint64_t seed);
  void clear();
  uint64_t word(uint64_t offset);
  void set_word(uint64_t offset, uint64_t value);
  int modify(ibv_qp_state state);
  ibv_qp_state state();
  ibv_event_type wait_event();
  bool has_no_event();
  void destroy_qp();
  void deregister();
  /// Binds a window over part of the region; returns the completion, sets window_rkey().
  ibv_wc bind_window(ibv_mw_type type, uint64_t offset, uint64_t length, unsigned access);
  void close();

  const QpAddress& address() const { return opened_.address; }
  uint64_t region_address(uint64_t offset = 0) const { return opened_.region_address + offset; }
  uint32_t rkey() const { return opened_.rkey; }
  uint32_t window_rkey() const { return window_rkey_; }

  /// Forgets the far side: it has died and is not to be closed.
  void abandon() { is_open_ = false; }

 private:
  FarReply call(const FarRequest& request);
  FarReply call(FarCommand command);

  std::unique_ptr<FarSide> here_;
  PeerProcess* there_ = nullptr;
  bool is_open_ = false;
  FarReply opened_;
  uint32_t window_rkey_ = 0;
};

/// The peer that tests of one program share, started at first use: a process per test would cost
/// more than the tests. main() ends it through end_shared_peer().
PeerProcess& shared_peer();
void end_shared_peer();

/// A queue pair with a region here and one there, connected with each other.
struct Link {
  Device device;
  Endpoint near;
  Region memory;
  Far far;

  Link(Placement placement, const QpOptions& options, uint64_t region_bytes);
  /// Different options on the far side; `far_access` is the access of its region.
  Link(Placement placement, const QpOptions& near_options, const QpOptions& far_options,
       uint64_t region_bytes, unsigned far_access = kAllAccess);
  Link(PeerProcess& process, const QpOptions& options, uint64_t region_bytes);
};

}  // namespace ringbolt::conformance
