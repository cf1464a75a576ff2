// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Captures Fletching's log records instead of printing them, until it is closed. */
public final class CapturedLog extends Handler {
  private final Logger logger = Logger.getLogger("io.github.fletching");
  private final Queue<LogRecord> records = new ConcurrentLinkedQueue<>();

  /** Starts capturing. */
  public CapturedLog() {
    logger.addHandler(this);
    logger.setUseParentHandlers(false);
  }

  /** Returns the records since the last call, as {@code message: exception's message}. */
  public List<String> take() {
    List<String> lines = new ArrayList<>();
    for (LogRecord each = records.poll(); each != null; each = records.poll()) {
      Throwable thrown = each.getThrown();
      lines.add(each.getMessage() + (thrown == null ? "" : ": " + thrown.getMessage()));
    }
    return lines;
  }

  @Override
  public void publish(LogRecord entry) {
    records.add(entry);
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    logger.removeHandler(this);
    logger.setUseParentHandlers(true);
  }
}
