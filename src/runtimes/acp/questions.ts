import type { RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import type { PermissionVerdict, SessionPort } from '../runtime.ts'
import { answerOf, questionOf } from './permission.ts'

/** The agent's requests for leave that wait for a person. */
export interface Questions {
  readonly isOpen: boolean
  /** `gone`: the agent takes it back. */
  ask(request: RequestPermissionRequest, key: string, gone: AbortSignal): Promise<RequestPermissionResponse>
  /** The turn is over or is to end: nobody needs to answer any more. */
  cancel(): void
}

export interface QuestionEvents {
  asked: SessionPort['asked']
  opened(tool: string): void
  /** The last open one was answered. */
  closed(tool: string, verdict: PermissionVerdict | undefined): void
}

export function createQuestions(events: QuestionEvents): Questions {
  const open = new Set<AbortController>()
  return {
    get isOpen() {
      return open.size > 0
    },
    async ask(request, key, gone) {
      const question = questionOf(request, key)
      const own = new AbortController()
      open.add(own)
      const asking = events.asked(question, AbortSignal.any([own.signal, gone]))
      events.opened(question.tool)
      let verdict: PermissionVerdict | undefined
      try {
        verdict = await asking
        if (own.signal.aborted || gone.aborted) verdict = undefined
      } finally {
        open.delete(own)
        events.closed(question.tool, verdict)
      }
      return answerOf(request, verdict)
    },
    cancel() {
      for (const question of open) question.abort()
    },
  }
}
