import type { AnswerOf } from '../../api/contract.ts'
import { paint, plain, plainLine } from './print.ts'

export type ShownMessage = AnswerOf<'messages'>['messages'][number]

export function mailHead(mail: ShownMessage): string {
  const parts = [
    paint('bold', mail.id),
    `${mail.from} → ${mail.to}`,
    ...(mail.priority === 'normal' ? [] : [paint('yellow', mail.priority)]),
    paint('dim', `${shortTime(mail.at)}, ${mail.delivery}`),
  ]
  return `${parts.join('  ')}  ${plainLine(mail.title)}`
}

/** The content is indented, so that no line of it can pass for one of ours. */
export function mailText(mail: ShownMessage): string {
  // One that was given no title is called by its own words, which stand below.
  const isOwnWords = mail.title.trim() === mail.content.trim()
  const head = mailHead(isOwnWords ? { ...mail, title: '' } : mail).trimEnd()
  return `${head}\n${indent(plain(mail.content))}`
}

export function indent(text: string): string {
  return text.replace(/^/gm, '    ')
}

/** To the second; the whole is in the JSON. */
export function shortTime(iso: string): string {
  return iso.replace(/\.\d+Z$/, 'Z')
}
