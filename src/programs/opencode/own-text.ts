import type { OpenCodeMessage, OpenCodePart } from './records.ts'

/**
 * The complete texts of a message that are the agent's own (C4): no thinking, tool input or output, nothing
 * added by the program, no summary of a compacted context.
 */
export function ownWords({ info, parts }: OpenCodeMessage): OpenCodePart[] {
  if (info.role !== 'assistant' || info.summary === true) return []
  const last = parts.at(-1)
  return parts.filter(
    (part) =>
      part.type === 'text' &&
      part.synthetic !== true &&
      part.ignored !== true &&
      (part.text ?? '').trim() !== '' &&
      // A text cut off by a broken connection has no end.
      part.time?.end !== undefined &&
      // An interruption cuts the text but sets its end; half a command must not be executed (C5).
      !(info.error !== undefined && part === last),
  )
}

/** Text of a user message, without the program's additions. */
export function userText({ parts }: OpenCodeMessage): string {
  return parts
    .filter((part) => part.type === 'text' && part.synthetic !== true)
    .map((part) => part.text ?? '')
    .join('\n')
}
