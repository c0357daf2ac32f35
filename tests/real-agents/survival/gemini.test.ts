import { describeSurvival } from './suite.ts'

describeSurvival('gemini')
