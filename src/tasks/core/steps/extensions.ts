/** More time, asked for while the work goes on: the deadline stands until someone moves it (S3.19). */
import { OPERATOR } from '../../../base/agent.ts'
import type { Question, Task } from '../../task.ts'
import { answer, findQuestion } from './answering.ts'
import { askPerson, notTaken, open } from './asking.ts'
import { done, type Handlers, refuse } from './outcome.ts'

export const extensions: Pick<Handlers, 'extension_requested' | 'extension_granted' | 'extension_refused'> = {
  extension_requested(view, { question: id, seconds, reason }, settings) {
    const { task } = view
    const refused = notTaken(task, id, settings)
    if (refused !== undefined) return refused
    if (!(seconds > 0 && seconds <= settings.maxExtensionSeconds)) {
      return refuse('OUT_OF_RANGE', `An extension is 1 to ${settings.maxExtensionSeconds} s, not ${seconds}`)
    }
    const to = task.delegator
    const text = `${task.agent} asks for ${seconds} s more for ${task.id}: ${reason}`
    const question: Question = { id, kind: 'extension', to, text, expiresAt: null, seconds }
    const asked = open(view, task, question, settings)
    if (to === OPERATOR) return done(asked, askPerson(view, question, 'input', reason, settings))
    return done(asked, {
      type: 'send',
      kind: 'extension',
      to,
      task: task.id,
      text,
      wake: true,
      inReplyTo: id,
    })
  },

  extension_granted(view, { question: ref, by }, settings) {
    const found = findQuestion(view.task, ref, by, ['extension'])
    if (!found.ok) return found
    const { task } = view
    const seconds = found.question.seconds ?? 0
    const ms = seconds * 1000
    const longer: Task =
      task.due?.kind === 'deadline'
        ? { ...task, due: { ...task.due, at: task.due.at + ms } }
        : { ...task, remainingMs: task.remainingMs + ms }
    return answer(view, found.question, `${seconds} s more were granted.`, settings, longer)
  },

  extension_refused(view, { question: ref, by, reason }, settings) {
    const found = findQuestion(view.task, ref, by, ['extension'])
    return found.ok ? answer(view, found.question, `No more time: ${reason}`, settings) : found
  },
}
