import type { TaskDelegation } from '../../wire/github-team.ts'

/** Of something that a delegation names, so much as one needs (S3.18). */
export type Excerpt = NonNullable<
  NonNullable<TaskDelegation['context']['additionalContext']>['excerpts']
>[number]

/** `text` is cleaned before: of a secret that a cut goes through, the first half would stay. */
export function beginning(text: string, most: number): string {
  const whole = text.toWellFormed()
  return whole.length <= most ? whole : `${whole.slice(0, most).toWellFormed()}…`
}
