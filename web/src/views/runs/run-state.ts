import type { AnswerOf } from '../../../../src/api/contract.ts'

export type RunNode = AnswerOf<'run'>['nodes'][number]

const TONES: Record<string, string> = {
  waiting: 'off',
  ready: 'held',
  asking: 'asks',
  completed: 'done',
  partial: 'asks',
  failed: 'bad',
  skipped: 'off',
  cancelled: 'off',
}
export const runTone = (state: string) => TONES[state] ?? 'busy'
