import type { Sessions } from '../agents/sessions.ts'
import type { UsageTracker } from '../agents/usage-and-limits.ts'
import type { AppError } from '../base/errors.ts'
import type { Person } from '../base/person.ts'
import { builtInEntries, type CommandEntry, commandEntry } from '../commands/commands.ts'
import type { Models } from '../llm/llm.ts'
import type { Conversations } from '../messages/conversations.ts'
import type { Holding } from '../people/hold-command.ts'
import type { HumanVerdict } from '../people/people.ts'
import type { DecideRequest } from '../people/verdicts.ts'
import type { Store } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import { askCommand } from './api.ts'
import { askHandler } from './ask.ts'
import { requestUserInputHandler, userResponseHandler } from './ask-user.ts'
import { delegateHandler } from './delegate.ts'
import { answerHandler, queryHandler } from './query.ts'
import { judgeHandler, reportHandler } from './report.ts'
import { taskActionHandler } from './task-action.ts'
import type { Tasks } from './tasks.ts'

interface TaskCommandsOptions {
  tasks: Tasks
  sessions: Pick<Sessions, 'isPaused' | 'session'>
  conversations: Pick<Conversations, 'causeOf' | 'observe'>
  holding: Pick<Holding, 'askToContinue'>
  store: Store
  timers: Pick<Timers, 'setFor'>
  usageTracker: Pick<UsageTracker, 'ownCall'>
  models: Models | undefined
  redact(text: string): string
  decide: DecideRequest
  /** A model's objection to a person's answer; must not run in a transaction. */
  checkAnswer(person: Person, request: string, verdict: HumanVerdict): Promise<AppError | undefined>
  /** Aborted when the service stops. */
  closing: AbortSignal
}

export function taskCommands(options: TaskCommandsOptions): CommandEntry[] {
  const { tasks, timers, decide } = options
  return [
    ...builtInEntries({
      delegate: delegateHandler(options),
      report: reportHandler(tasks),
      query: queryHandler(tasks),
      answer: answerHandler(tasks, decide),
      judge: judgeHandler(tasks),
      task_action: taskActionHandler(tasks),
      request_user_input: requestUserInputHandler(tasks, timers),
      user_response: userResponseHandler(options),
    }),
    commandEntry(askCommand, askHandler(options)),
  ]
}
