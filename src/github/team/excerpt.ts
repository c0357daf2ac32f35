import { beginning } from '../../base/excerpt.ts'
import type { TaskDelegation } from '../wire/codec.ts'

/** Of something that a delegation names, so much as one needs (S3.18). */
export type Excerpt = NonNullable<
  NonNullable<TaskDelegation['context']['additionalContext']>['excerpts']
>[number]

/** `text` is redacted before: the cut may go through a secret. */
export function shortened(text: string, most: number): string {
  const whole = text.toWellFormed()
  return whole.length <= most ? whole : `${beginning(whole, most)}…`
}
