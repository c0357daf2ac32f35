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

/** Indents the content, so that no line of it can imitate our own output. */
export function mailText(mail: ShownMessage): string {
  // A message without a title has its first words as title; showing both would repeat them.
  const isOwnWords = mail.title.trim() === mail.content.trim()
  const head = mailHead(isOwnWords ? { ...mail, title: '' } : mail).trimEnd()
  return `${head}\n${indent(plain(mail.content))}`
}

export function indent(text: string): string {
  return text.replace(/^/gm, '    ')
}

/** To the second; --json has the full timestamp. */
export function shortTime(iso: string): string {
  return iso.replace(/\.\d+Z$/, 'Z')
}
