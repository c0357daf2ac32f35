import type { Message } from '../model/message.ts'
import { escapeMarkers } from './response.ts'

/** How a message is put before an agent: who, what, and how to answer, in a frame that the scanner skips (C4). */
export function renderEnvelope(message: Message): string {
  return [
    `[ORCHUB MESSAGE ${message.id}]`,
    `From: ${message.from}`,
    `Title: ${oneLine(message.title)}`,
    `Priority: ${message.priority}`,
    '',
    escapeMarkers(withoutControls(message.content)),
    '',
    `[END ORCHUB MESSAGE ${message.id}]`,
  ].join('\n')
}

function oneLine(text: string): string {
  return escapeMarkers(withoutControls(text).replace(/\s+/g, ' '))
}

/** Escape sequences and other controls could drive a terminal; tabs and line ends are formatting. */
function withoutControls(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '')
}
