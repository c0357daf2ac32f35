import { AppError } from '../../model/errors.ts'
import type { AddedCommand, BuiltInHandlers, Handlers } from '../handler.ts'
import { requestActionHandler } from './action.ts'
import { requestUserInputHandler, userResponseHandler } from './ask-user.ts'
import { delegateHandler } from './delegate.ts'
import { judgeHandler } from './judge.ts'
import { acknowledgeHandler, mailboxCheckHandler, queryMailboxHandler } from './mailbox.ts'
import { answerHandler, queryHandler } from './query.ts'
import { reportHandler } from './report.ts'
import { sendMessageHandler } from './send-message.ts'
import { listAgentsHandler, queryStateHandler } from './state.ts'
import { contextStatusHandler, updateStatusHandler } from './status.ts'
import { taskActionHandler } from './task-action.ts'

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
