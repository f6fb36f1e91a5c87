#include "device/counting.h"

namespace ringbolt::device {
namespace {

void count_growth(uint64_t now, uint64_t& told, RingboltSharedWord word, CountingCell& cell) {
  if (now != told) [[unlikely]] {
    cell.note(word, now - told);
    told = now;
  }
}

}  // namespace

void count_news(const transport::RequesterCounters& now, transport::RequesterCounters& told, CountingCell& cell) {
  count_growth(now.resent, told.resent, kSharedResent, cell);
  count_growth(now.timeouts, told.timeouts, kSharedAckTimeout, cell);
  count_growth(now.probes, told.probes, kSharedProbes, cell);
  count_growth(now.sequence_naks, told.sequence_naks, kSharedSequenceNak, cell);
  count_growth(now.rnr_naks, told.rnr_naks, kSharedReceivedRnr, cell);
  count_growth(now.implied_naks, told.implied_naks, kSharedImpliedNak, cell);
}

void count_news(const transport::ResponderCounters& now, transport::ResponderCounters& told, CountingCell& cell) {
  count_growth(now.duplicates, told.duplicates, kSharedDuplicateRequest, cell);
  count_growth(now.out_of_sequence, told.out_of_sequence, kSharedOutOfSequence, cell);
  count_growth(now.rnr_naks, told.rnr_naks, kSharedSentRnr, cell);
}

void count_news(const transport::UcResponderCounters& now, transport::UcResponderCounters& told, CountingCell& cell) {
  count_growth(now.messages_dropped, told.messages_dropped, kSharedOutOfSequence, cell);
  count_growth(now.dropped, told.dropped, kSharedRcvDrops, cell);
}

void count_failed_send(ibv_wc_status status, CountingCell& cell) {
  if (status == IBV_WC_WR_FLUSH_ERR) {
    return cell.note(kSharedRequestFlush);
  }
  cell.note(kSharedRequestError);
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return cell.note(kSharedRetryExceeded);
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return cell.note(kSharedRnrRetryExceeded);
    case IBV_WC_REM_ACCESS_ERR:
      return cell.note(kSharedRequestRemoteAccess);
    case IBV_WC_REM_INV_REQ_ERR:
      return cell.note(kSharedRequestRemoteInvalid);
    default:
      return;
  }
}

void count_failed_receive(ibv_wc_status status, CountingCell& cell) {
  cell.note(status == IBV_WC_WR_FLUSH_ERR ? kSharedReceiveFlush : kSharedReceiveError);
  if (status == IBV_WC_LOC_LEN_ERR) {
    cell.note(kSharedReceiveLength);
  }
}

}  // namespace ringbolt::device
