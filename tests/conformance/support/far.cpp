#include "far.h"

#include <algorithm>
#include <ostream>

#include "deadline.h"

namespace ringbolt::conformance {
namespace {

void put_pieces(FarRequest& request, const std::vector<Piece>& pieces) {
  request.n_pieces = static_cast<uint32_t>(std::min(pieces.size(), kMaxPieces));
  std::copy_n(pieces.begin(), request.n_pieces, request.pieces);
}

}  // namespace

const char* placement_name(Placement placement) {
  return placement == Placement::same_process ? "same_process" : "other_process";
}

void PrintTo(Placement placement, std::ostream* out) { *out << placement_name(placement); }

std::string parameter_name(const testing::TestParamInfo<Placement>& parameter) {
  return placement_name(parameter.param);
}

Far::Far(Placement placement) {
  if (placement == Placement::same_process) {
    here_ = std::make_unique<FarSide>();
  } else {
    there_ = &shared_peer();
  }
}

Far::Far(PeerProcess& process) : there_(&process) {}

Far::~Far() {
  if (is_open_) {
    try {
      close();
    } catch (const std::exception& problem) {
      ADD_FAILURE() << "closing the far side: " << problem.what();
    }
  }
}

FarReply Far::call(const FarRequest& request) {
  FarReply reply = here_ != nullptr ? here_->handle(request) : there_->call(request);
  if (reply.failed) {
    throw SetUpError(std::string("far side: ") + reply.text);
  }
  return reply;
}

FarReply Far::call(FarCommand command) {
  FarRequest request;
  request.command = command;
  return call(request);
}

void Far::open(const QpOptions& qp, uint64_t region_bytes, unsigned region_access) {
  FarRequest request;
  request.command = FarCommand::open;
  request.qp = qp;
  request.region_bytes = region_bytes;
  request.region_access = region_access;
  opened_ = call(request);
  is_open_ = true;
}

void Far::connect(const QpAddress& peer) {
  FarRequest request;
  request.command = FarCommand::connect;
  request.peer = peer;
  call(request);
}

int Far::post_recv(uint64_t wr_id, const std::vector<Piece>& pieces) {
  FarRequest request;
  request.command = FarCommand::post_recv;
  request.wr_id = wr_id;
  put_pieces(request, pieces);
  return call(request).error;
}

int Far::post_send(uint64_t wr_id, ibv_wr_opcode opcode, const std::vector<Piece>& pieces,
                   unsigned flags, uint64_t remote_address, uint32_t rkey, uint32_t immediate) {
  FarRequest request;
  request.command = FarCommand::post_send;
  request.wr_id = wr_id;
  request.opcode = opcode;
  request.flags = flags;
  request.remote_address = remote_address;
  request.rkey = rkey;
  request.immediate = immediate;
  put_pieces(request, pieces);
  return call(request).error;
}

ibv_wc Far::wait_recv() { return call(FarCommand::wait_recv).wc; }
ibv_wc Far::wait_send() { return call(FarCommand::wait_send).wc; }

void Far::fill(const std::vector<Piece>& pieces, uint64_t seed) {
  FarRequest request;
  request.command = FarCommand::fill;
  request.seed = seed;
  put_pieces(request, pieces);
  call(request);
}

std::string Far::check(const std::vector<Piece>& pieces, uint64_t length, uint64_t seed) {
  FarRequest request;
  request.command = FarCommand::check;
  request.length = length;
  request.seed = seed;
  put_pieces(request, pieces);
  return call(request).text;
}

std::string Far::check_soon(const std::vector<Piece>& pieces, uint64_t length, uint64_t seed) {
  std::string text;
  wait_until([&] {
    text = check(pieces, length, seed);
    return text.empty();
  });
  return text;
}

void Far::clear() { call(FarCommand::clear); }

uint64_t Far::word(uint64_t offset) {
  FarRequest request;
  request.command = FarCommand::get_word;
  request.offset = offset;
  return call(request).word;
}

void Far::set_word(uint64_t offset, uint64_t value) {
  FarRequest request;
  request.command = FarCommand::set_word;
  request.offset = offset;
  request.word = value;
  call(request);
}

int Far::modify(ibv_qp_state state) {
  FarRequest request;
  request.command = FarCommand::modify;
  request.state = state;
  return call(request).error;
}

ibv_qp_state Far::state() { return call(FarCommand::get_state).state; }
ibv_event_type Far::wait_event() { return call(FarCommand::wait_event).event_type; }
bool Far::has_no_event() { return call(FarCommand::no_event).word == 1; }
void Far::destroy_qp() { call(FarCommand::destroy_qp); }
void Far::deregister() { call(FarCommand::deregister); }

ibv_wc Far::bind_window(ibv_mw_type type, uint64_t offset, uint64_t length, unsigned access) {
  FarRequest request;
  request.command = type == IBV_MW_TYPE_1 ? FarCommand::bind_type_1 : FarCommand::bind_type_2;
  request.offset = offset;
  request.length = length;
  request.region_access = access;
  const FarReply reply = call(request);
  must_succeed(reply.error, "binding a window");
  window_rkey_ = reply.rkey;
  return reply.wc;
}

void Far::close() {
  is_open_ = false;
  call(FarCommand::close);
}

Link::Link(Placement placement, const QpOptions& options, uint64_t region_bytes)
    : Link(placement, options, options, region_bytes) {}

Link::Link(Placement placement, const QpOptions& near_options, const QpOptions& far_options,
           uint64_t region_bytes, unsigned far_access)
    : device(open_device()),
      near(device, near_options),
      memory(near.pd(), region_bytes),
      far(placement) {
  far.open(far_options, region_bytes, far_access);
  near.connect(far.address());
  far.connect(near.address());
}

Link::Link(PeerProcess& process, const QpOptions& options, uint64_t region_bytes)
    : device(open_device()),
      near(device, options),
      memory(near.pd(), region_bytes),
      far(process) {
  far.open(options, region_bytes);
  near.connect(far.address());
  far.connect(near.address());
}

}  // namespace ringbolt::conformance
