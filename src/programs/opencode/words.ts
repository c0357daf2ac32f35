import type { Message, Part } from './records.ts'

/**
 * The whole texts of a message that are the agent's own word (C4): no thinking, no tool's input or output, nothing
 * that the program put in, no summary of a compacted context.
 */
export function ownWords({ info, parts }: Message): Part[] {
  if (info.role !== 'assistant' || info.summary === true) return []
  const last = parts.at(-1)
  return parts.filter(
    (part) =>
      part.type === 'text' &&
      part.synthetic !== true &&
      part.ignored !== true &&
      (part.text ?? '').trim() !== '' &&
      // A text that broke off with its connection has no end.
      part.time?.end !== undefined &&
      // An interruption cuts the text and ends it all the same; no half of a command is carried out (C5).
      !(info.error !== undefined && part === last),
  )
}

/** What the user's message says, without what the program added to it. */
export function userText({ parts }: Message): string {
  return parts
    .filter((part) => part.type === 'text' && part.synthetic !== true)
    .map((part) => part.text ?? '')
    .join('\n')
}
