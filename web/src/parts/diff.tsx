import { diffLines } from './diff-lines.ts'
import { visible } from './visible.ts'

const SIGNS = { same: ' ', out: '−', in: '+' }

export function Diff({ before, after }: { before: string; after: string }) {
  return (
    <pre className="diff">
      {diffLines(before, after).map(({ kind, text }, index) => (
        <span key={index} data-kind={kind}>
          {SIGNS[kind]} {visible(text)}
          {'\n'}
        </span>
      ))}
    </pre>
  )
}
