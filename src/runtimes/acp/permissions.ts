import type { RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import type { PermissionQuestion, PermissionVerdict, SessionPort } from '../runtime.ts'

interface QuestionEvents {
  asked: SessionPort['askPermission']
  opened(tool: string): void
  /** The last open request was answered. */
  closed(tool: string, verdict: PermissionVerdict | undefined): void
}

/** Permission requests of the agent that wait for a person. */
export function createQuestions(events: QuestionEvents) {
  const open = new Set<AbortController>()
  return {
    get isOpen() {
      return open.size > 0
    },
    /** `signal`: the agent withdraws the request. */
    async ask(
      request: RequestPermissionRequest,
      key: string,
      signal: AbortSignal,
    ): Promise<RequestPermissionResponse> {
      const question = questionOf(request, key)
      const own = new AbortController()
      open.add(own)
      const asking = events.asked(question, AbortSignal.any([own.signal, signal]))
      events.opened(question.tool)
      let verdict: PermissionVerdict | undefined
      try {
        verdict = await asking
        if (own.signal.aborted || signal.aborted) verdict = undefined
      } finally {
        open.delete(own)
        events.closed(question.tool, verdict)
      }
      return answerOf(request, verdict)
    },
    /** The turn ended or is being cancelled: no verdict is needed any more. */
    cancel() {
      for (const question of open) question.abort()
    },
  }
}

const MAX_INPUT_LENGTH = 64 * 1024

function questionOf(request: RequestPermissionRequest, key: string): PermissionQuestion {
  const { toolCall } = request
  const title = toolCall.title ?? undefined
  return {
    key,
    tool: toolCall.name ?? toolCall.kind ?? 'tool',
    input: shown(toolCall),
    ...(title === undefined ? {} : { reason: title }),
  }
}

/** The exact request: the tool's input if the agent sends one, otherwise the text it displays. */
function shown(toolCall: RequestPermissionRequest['toolCall']): Record<string, unknown> {
  const { rawInput, title, content, locations } = toolCall
  const isObject = typeof rawInput === 'object' && rawInput !== null && !Array.isArray(rawInput)
  const input: Record<string, unknown> = isObject
    ? { ...rawInput }
    : { title, ...(rawInput === undefined ? {} : { input: rawInput }) }
  if (content != null && content.length > 0) input.content = content
  if (locations != null && locations.length > 0) input.locations = locations
  const json = JSON.stringify(input)
  return json.length <= MAX_INPUT_LENGTH ? input : { title, cut: `${json.slice(0, MAX_INPUT_LENGTH)}…` }
}

/**
 * A verdict holds once. If the agent offers no such option, the request is cancelled, since allowing one call
 * does not allow all later ones.
 */
function answerOf(
  request: RequestPermissionRequest,
  verdict: PermissionVerdict | undefined,
): RequestPermissionResponse {
  const kind = verdict?.allow === true ? 'allow_once' : 'reject_once'
  const option = verdict === undefined ? undefined : request.options.find((offered) => offered.kind === kind)
  if (option === undefined) return { outcome: { outcome: 'cancelled' } }
  return { outcome: { outcome: 'selected', optionId: option.optionId } }
}
