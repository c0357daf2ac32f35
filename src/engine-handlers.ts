import { listAgentsHandler, queryStateHandler } from './agents/commands/query-state.ts'
import { requestActionHandler } from './agents/commands/request-action.ts'
import { contextStatusHandler, updateStatusHandler } from './agents/commands/status.ts'
import { AppError } from './base/errors.ts'
import type { AddedCommand, BuiltInHandlers, Handlers } from './commands/handler.ts'
import { acknowledgeHandler, mailboxCheckHandler, queryMailboxHandler } from './messages/commands/mailbox.ts'
import { sendMessageHandler } from './messages/commands/send-message.ts'
import { requestUserInputHandler, userResponseHandler } from './tasks/commands/ask-user.ts'
import { delegateHandler } from './tasks/commands/delegate.ts'
import { judgeHandler } from './tasks/commands/judge.ts'
import { answerHandler, queryHandler } from './tasks/commands/query.ts'
import { reportHandler } from './tasks/commands/report.ts'
import { taskActionHandler } from './tasks/commands/task-action.ts'

const BUILT_IN: BuiltInHandlers = {
  send_message: sendMessageHandler,
  mailbox_check: mailboxCheckHandler,
  query_mailbox: queryMailboxHandler,
  update_status: updateStatusHandler,
  request_action: requestActionHandler,
  query_state: queryStateHandler,
  list_agents: listAgentsHandler,
  context_status: contextStatusHandler,
  acknowledge: acknowledgeHandler,
  delegate: delegateHandler,
  report: reportHandler,
  query: queryHandler,
  answer: answerHandler,
  request_user_input: requestUserInputHandler,
  user_response: userResponseHandler,
  judge: judgeHandler,
  task_action: taskActionHandler,
}

/** All handlers by command type. The door has checked a command's fields against its schema before it looks here. */
export function handlerTable(added: readonly AddedCommand[]): Handlers {
  const table = { ...BUILT_IN } as unknown as Record<string, AddedCommand['handler']>
  for (const { definition, handler } of added) {
    if (Object.hasOwn(table, definition.type)) {
      throw new AppError('INVALID_COMMAND', `The command type "${definition.type}" has a handler already`)
    }
    table[definition.type] = handler
  }
  return table
}
