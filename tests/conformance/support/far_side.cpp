#include <algorithm>

#include "far_protocol.h"

namespace ringbolt::conformance {
namespace {

std::span<const Piece> pieces_of(const FarRequest& request) {
  return {request.pieces, std::min<size_t>(request.n_pieces, kMaxPieces)};
}

void put_text(FarReply& reply, const std::string& text) {
  const size_t length = std::min(text.size(), sizeof reply.text - 1);
  std::copy_n(text.data(), length, reply.text);
  reply.text[length] = '\0';
}

}  // namespace

FarReply FarSide::handle(const FarRequest& request) {
  FarReply reply;
  try {
    carry_out(request, reply);
  } catch (const std::exception& problem) {
    reply.failed = true;
    put_text(reply, problem.what());
  }
  return reply;
}

void FarSide::carry_out(const FarRequest& request, FarReply& reply) {
  switch (request.command) {
    case FarCommand::open:
      return open(request, reply);
    case FarCommand::connect:
      return endpoint_->connect(request.peer);
    case FarCommand::post_recv:
      reply.error = conformance::post_recv(endpoint_->qp(), request.wr_id,
                                           region_->sges(pieces_of(request)));
      return;
    case FarCommand::post_send:
      reply.error = post_send(request);
      return;
    case FarCommand::wait_recv:
      reply.wc = wait_completion(endpoint_->recv_cq());
      return;
    case FarCommand::wait_send:
      reply.wc = wait_completion(endpoint_->send_cq());
      return;
    case FarCommand::fill:
      return region_->fill(pieces_of(request), request.seed);
    case FarCommand::check:
      return put_text(reply, region_->check(pieces_of(request), request.length, request.seed));
    case FarCommand::clear:
      return region_->clear();
    case FarCommand::get_word:
      reply.word = region_->word(request.offset);
      return;
    case FarCommand::set_word:
      return region_->set_word(request.offset, request.word);
    case FarCommand::modify:
      reply.error = endpoint_->to_state(request.state);
      return;
    case FarCommand::get_state:
      reply.state = endpoint_->state();
      return;
    case FarCommand::wait_event:
      reply.event_type = wait_async_event(*device_).event_type;
      return;
    case FarCommand::no_event:
      reply.word = has_no_async_event(*device_) ? 1 : 0;
      return;
    case FarCommand::destroy_qp:
      return endpoint_->destroy_qp();
    case FarCommand::deregister:
      region_->mr.reset();
      return;
    case FarCommand::bind_type_1:
    case FarCommand::bind_type_2:
      return bind_window(request, reply);
    case FarCommand::close:
      return close();
  }
}

void FarSide::open(const FarRequest& request, FarReply& reply) {
  close();
  device_ = std::make_unique<Device>(open_device());
  endpoint_ = std::make_unique<Endpoint>(*device_, request.qp);
  region_ =
      std::make_unique<Region>(endpoint_->pd(), request.region_bytes, request.region_access);
  reply.address = endpoint_->address();
  reply.region_address = region_->address();
  reply.lkey = region_->lkey();
  reply.rkey = region_->rkey();
}

int FarSide::post_send(const FarRequest& request) {
  SendWr wr(request.wr_id, request.opcode, region_->sges(pieces_of(request)), request.flags);
  wr.immediate(request.immediate).remote(request.remote_address, request.rkey);
  return wr.post(endpoint_->qp());
}

void FarSide::bind_window(const FarRequest& request, FarReply& reply) {
  const bool is_type_2 = request.command == FarCommand::bind_type_2;
  window_.reset(must(
      ibv_alloc_mw(endpoint_->pd(), is_type_2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1), "ibv_alloc_mw"));
  const ibv_mw_bind_info info{region_->mr.get(), region_->address(request.offset), request.length,
                              request.region_access};
  if (is_type_2) {
    SendWr wr(request.wr_id, IBV_WR_BIND_MW, {});
    wr.wr.bind_mw.mw = window_.get();
    wr.wr.bind_mw.rkey = ibv_inc_rkey(window_->rkey);
    wr.wr.bind_mw.bind_info = info;
    reply.error = wr.post(endpoint_->qp());
    if (reply.error == 0) {
      window_->rkey = wr.wr.bind_mw.rkey;
    }
  } else {
    ibv_mw_bind bind{request.wr_id, IBV_SEND_SIGNALED, info};
    reply.error = ibv_bind_mw(endpoint_->qp(), window_.get(), &bind);
  }
  if (reply.error == 0) {
    reply.wc = wait_completion(endpoint_->send_cq());
  }
  reply.rkey = window_->rkey;
}

void FarSide::close() {
  window_.reset();
  region_.reset();
  endpoint_.reset();
  device_.reset();
}

}  // namespace ringbolt::conformance
