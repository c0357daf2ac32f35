/** Nowhere but in an envelope: in a message's own content the bracket is another character (C17). */
const MARKER = /\[ORCHUB MESSAGE (\S+?)\]/g

/** The ids of the messages whose envelopes are in the text. */
export function messageIdsIn(text: string): string[] {
  return [...text.matchAll(MARKER)].map((match) => match[1]!)
}

/** Whether a prompt is, or holds, that text: an input box turns tabs into spaces and trims. */
export function holdsText(prompt: string, text: string): boolean {
  return plain(prompt).includes(plain(text))
}

function plain(text: string): string {
  return text
    .replace(/[\u0000-\u001F\u007F-\u009F]/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}
