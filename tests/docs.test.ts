import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../src/config/config.ts'
import { readPlan } from '../src/runs/plan/read-plan.ts'

const ROOT = join(import.meta.dirname, '..')
const pages = execFileSync('git', ['ls-files', '*.md'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n')
const read = (page: string) => readFileSync(join(ROOT, page), 'utf8')
const isPlan = (block: string) => block.startsWith('# plan.yaml')

describe('the documentation', () => {
  it.each(pages)('%s links only to existing files', (page) => {
    const links = [...read(page).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map((match) => match[1]!)
    const relative = links.filter((link) => !/^[a-z]+:/.test(link))
    const missing = relative.filter((link) => !existsSync(join(ROOT, dirname(page), link)))
    expect(missing).toEqual([])
  })

  it.each(pages.filter((page) => page !== 'CHANGELOG.md'))('%s names only existing source files', (page) => {
    const named = [
      ...read(page).matchAll(/(?<![\w/.-])(?:src|tests|web\/src|bench|scripts)\/[\w./-]+\.tsx?\b/g),
    ]
    expect(named.map(([file]) => file).filter((file) => !existsSync(join(ROOT, file)))).toEqual([])
  })

  it.each(pages)('%s shows only configurations that work', (page) => {
    const blocks = [...read(page).matchAll(/```yaml\n([\s\S]*?)```/g)].map((match) => match[1]!)
    for (const block of blocks.filter((text) => text.includes('agents:') && !isPlan(text))) {
      const loaded = parseConfig(block, { env: { PASSWORD: 'x' } })
      expect(loaded.ok ? [] : loaded.error, block).toEqual([])
    }
  })

  it.each(pages)('%s shows only plans that work', (page) => {
    const blocks = [...read(page).matchAll(/```yaml\n([\s\S]*?)```/g)].map((match) => match[1]!)
    for (const block of blocks.filter(isPlan)) {
      const result = readPlan(block)
      expect(result.ok ? [] : result.error, block).toEqual([])
    }
  })
})
